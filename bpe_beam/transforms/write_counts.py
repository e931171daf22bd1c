"""`WriteCounts`: counted words of a user's pipeline in, a counts folder out.

The words go to the parts of the folder by the hash that the command line uses, so that equal counts
are equal files. When all words have arrived, the totals claim the folder and begin each part, also
those without words; `claimed_folder.py` keeps other runs out of the folder.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import apache_beam as beam
import msgspec
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from msgspec import Struct
from msgspec.structs import replace

from bpe_beam import json_structs
from bpe_beam.counts.manifest import CountsManifest, CountsPart, added_up, part_name, read_manifest
from bpe_beam.counts.part_files import words_of, write_part
from bpe_beam.counts.word_table import PARTITIONS, WordTable
from bpe_beam.errors import DataError, UsageError, require
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.messages import list_few
from bpe_beam.storage import PathName, Storage, path_name, redact
from bpe_beam.storage.names import absolute
from bpe_beam.transforms import claimed_folder
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.counted_words import (
    BlockHead,
    GatheredWords,
    blocks_in,
    rules_of,
    to_block_chunks,
    without_files,
)
from bpe_beam.transforms.shuffles import (
    Chunk,
    CreateElements,
    from_chunks,
    outputs_of,
    to_chunks,
)
from bpe_beam.workers.source_tables import NO_SOURCE
from bpe_beam.workers.split_task import require_visible

_TOTALS, _ROWS, _MAIN = "totals", "rows", "main"
"""The tags of the outputs of steps."""

_KEYED = tuple[int, Chunk]

_NAMES = [part_name(partition, PARTITIONS) for partition in range(PARTITIONS)]


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(str)
class WriteCounts(beam.PTransform):
    """Writes counted words as a counts folder, which `bpe-beam train --counts` and others read.

    Takes the batches of `CountWords` and of `ReadCounts`, also several of them flattened; their
    counts are added. All must have been counted by the same rules, all by source or none, all with
    places or none. The parts have the same bytes as the parts of `bpe-beam count` for the same
    documents. The manifest has the documents, bytes of text and words of the batches, in total and
    by source; documents that were taken out before `CountWords` are unknown to it, and so are the
    names of input files, but those that `ReadCounts` found in a manifest. For bounded input in the
    global window. The output is the manifest's URL.

    The words must add up to the totals, so no step in between may drop or change batches.

    One run owns the folder: another `WriteCounts` fails, in the same pipeline when it is built, in
    another pipeline when it runs. A run that fails before it writes leaves the folder empty; after
    a later failure the next run needs `overwrite`. Without any batch the run fails.

    Memory: a worker has the words of one of 32 parts, of all sources.

    Counters: `unique_words` (each word once, whatever its sources).

    Args:
        folder: An empty or new folder; with `overwrite`, one with only files that this
            package wrote.
        storage: The storage client.
        overwrite: Whether to remove what a job or another run, finished or not, wrote in the
            folder. It is removed when the pipeline is built.

    Raises:
        UsageError: An argument of a wrong kind, a folder that is not empty or that the pipeline
            writes already, or input that is unbounded or in windows.
    """

    def __init__(
        self, folder: PathName, *, storage: Storage | None = None, overwrite: bool = False
    ) -> None:
        super().__init__()
        folder = path_name(folder, "folder")
        require(
            isinstance(overwrite, bool), f"must be True or False, got {overwrite!r}", "overwrite"
        )
        self.folder = absolute(folder)
        self.storage = storage or Storage()
        self.overwrite = overwrite
        names = self.storage.list_names(folder)
        require(
            overwrite or not names,
            f"must be empty or new, got {redact(folder)}, which has files: {list_few(names)}",
            "folder",
            remedy="give another one, or set overwrite=True to remove what bpe-beam wrote there",
        )

    def display_data(self) -> dict[str, Any]:
        """Return the settings for monitoring interfaces."""
        return {"folder": redact(self.folder), "overwrite": self.overwrite}

    def expand(self, words: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Return the URL of the manifest."""
        if not words.is_bounded or not isinstance(words.windowing.windowfn, GlobalWindows):
            raise UsageError(
                "WriteCounts needs bounded input in the global window, since it writes a folder "
                "when all words have arrived"
            )
        claimed_folder.take_folder(words.pipeline, self.folder, "folder")
        if self.overwrite:
            _remove_earlier_run(self.storage, self.folder)
        self.storage.make_folder(self.folder)
        target = CountsFolder(self.storage, self.folder, secrets.token_hex(16))
        types = {_MAIN: _KEYED, _TOTALS: _KEYED}
        split = outputs_of(words, "SplitToParts", beam.FlatMap(_split), types)
        # It makes sure that there is an element to gather, and refuses the folder early.
        begin = (
            words.pipeline
            | "Begin" >> CreateElements([b""], bytes)
            | "CheckFolder" >> beam.FlatMap(_check_free, target).with_output_types(_KEYED)
        )
        totals = (
            (split[_TOTALS], begin)
            | "WithBegin" >> beam.Flatten().with_output_types(_KEYED)
            | "GatherTotals" >> beam.GroupByKey()
        )
        types = {_MAIN: _KEYED, _ROWS: _KEYED}
        claimed = outputs_of(totals, "ClaimFolder", beam.FlatMap(_claim, target), types)
        parts = (
            (split[_MAIN], claimed[_MAIN])
            | "WithTotals" >> beam.Flatten().with_output_types(_KEYED)
            | "GatherParts" >> beam.GroupByKey()
            | "WritePart" >> beam.FlatMap(_write_part, target).with_output_types(_KEYED)
        )
        return (
            (parts, claimed[_ROWS])
            | "WithParts" >> beam.Flatten().with_output_types(_KEYED)
            | "GatherRows" >> beam.GroupByKey()
            | "WriteManifest" >> beam.FlatMap(_write_manifest, target).with_output_types(str)
        )


@dataclass(frozen=True)
class CountsFolder(claimed_folder.ClaimedFolder):
    """The folder of a run of `WriteCounts`."""

    storage: Storage
    url: str
    number: str

    transform: ClassVar[str] = "WriteCounts"


class _Row(Struct, frozen=True, omit_defaults=True):
    """The totals of all words, or a written part and the number of its words by source."""

    totals: CountsManifest | None = None
    part: CountsPart | None = None
    counted: dict[str, int] = {}


def _remove_earlier_run(storage: Storage, folder: str) -> None:
    """See `claimed_folder.remove_earlier_run`."""

    def finished() -> JobRecord | None:
        manifest = read_manifest(storage, folder)
        if manifest.job_fingerprint is not None:  # of a job, which keeps its `__job`
            return None
        names = [part.name for part in manifest.parts]
        return claimed_folder.record_of(CountsFolder.transform, names)

    claimed_folder.remove_earlier_run(storage, folder, finished)


def _split(batch: pa.RecordBatch) -> Iterator[Any]:
    """Yield the words of a batch by part; the totals as another output, under one key."""
    for head, words in blocks_in(batch, "WriteCounts"):
        if words is None:
            for chunk in to_block_chunks(head):
                yield beam.pvalue.TaggedOutput(_TOTALS, (0, chunk))
            continue
        table = WordTable(with_places=head.with_places)
        table.add_block(words)
        for partition, block in table.blocks():
            for chunk in to_block_chunks(head, block):
                yield partition, chunk


def _check_free(_: bytes, target: CountsFolder) -> Iterator[tuple[int, Chunk]]:
    """Yield a block without words, if no other run has claimed the folder or finished there."""
    target.require_free()
    for chunk in to_block_chunks(BlockHead({})):
        yield 0, chunk


def _claim(element: tuple[int, Iterable[Chunk]], target: CountsFolder) -> Iterator[Any]:
    """Claim the folder, and yield the totals of all words to each part and to the manifest."""
    gathered = GatheredWords("WriteCounts")
    for _ in gathered.add_chunks(element[1]):
        pass
    totals = gathered.totals()
    if totals is None:
        raise DataError(
            "WriteCounts: no totals of documents arrived, which CountWords and ReadCounts give in "
            "a batch without rows: nothing was counted, or a step between dropped that batch"
        )
    require_visible(target.storage, target.url)
    target.claim(_NAMES)
    head = BlockHead(rules_of(totals), totals=without_files(totals))
    for partition in range(PARTITIONS):
        for chunk in to_block_chunks(head):
            yield partition, chunk
    for row in _row(_Row(totals=totals)):
        yield beam.pvalue.TaggedOutput(_ROWS, row)


def _row(row: _Row) -> Iterator[tuple[int, Chunk]]:
    for chunk in to_chunks(msgspec.json.encode(row)):
        yield 0, chunk


def _write_part(
    element: tuple[int, Iterable[Chunk]], target: CountsFolder
) -> Iterator[tuple[int, Chunk]]:
    """Write one part of the folder; yield its row under one key."""
    partition, chunks = element
    require_visible(target.storage, target.url)
    target.require_claimed()
    gathered = GatheredWords("WriteCounts")
    for _ in gathered.add_chunks(chunks):
        pass
    totals = gathered.totals()
    if totals is None:
        raise DataError(_LOST)
    by_source = totals.sources is not None
    words = words_of(gathered.tables, by_source)
    part = write_part(target.storage, target.url, _NAMES[partition], words, totals.with_places)
    counters.counter("unique_words").inc(part.unique_words)
    yield from _row(_Row(part=part, counted=dict(gathered.counted)))


def _write_manifest(element: tuple[int, Iterable[Chunk]], target: CountsFolder) -> Iterator[str]:
    """Write the manifest, which completes the folder, after a check of all totals."""
    rows = [json_structs.decode(data, _Row) for data in from_chunks(element[1], "row")]
    parts = sorted((row.part for row in rows if row.part), key=lambda part: part.name)
    every = [row.totals for row in rows if row.totals]
    if len(every) != 1 or [part.name for part in parts] != _NAMES:
        raise DataError(_LOST)
    totals = every[0]
    counted: Counter[str] = Counter()
    for row in rows:
        counted.update(row.counted)
    known = {NO_SOURCE: totals.words}
    if totals.sources is not None:
        known = {name: each.words for name, each in totals.sources.items()}
    for name in {*known, *counted}:
        if counted[name] != known.get(name, 0):
            of = f" of the source {name!r}" if name else ""
            raise DataError(
                f"WriteCounts: {counted[name]:,} words{of} arrived, but {known.get(name, 0):,} "
                "were counted: a step between dropped or changed some (leave that to bpe-beam "
                "counts filter), or the runner lost some"
            )
    manifest = replace(
        added_up(every, parts),
        unique_words=sum(part.unique_words for part in parts),
        word_bytes=sum(part.word_bytes for part in parts),
        parts=tuple(parts),
    )
    yield target.complete(manifest.to_bytes(), {part.name: part.bytes for part in parts})


_LOST = "WriteCounts: the runner lost some of the words, or delivered them twice; run it again"

"""`ReadCounts`: a counts folder in, batches of counted words out, as `CountWords` returns them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import msgspec
import pyarrow as pa
from msgspec.structs import replace

from bpe_beam import json_structs
from bpe_beam.counts.manifest import CountsManifest, CountsPart, added_up, read_hashed_manifest
from bpe_beam.counts.part_files import read_part
from bpe_beam.counts.word_table import WordTable
from bpe_beam.errors import DataError
from bpe_beam.storage import PathName, Storage, path_name, redact
from bpe_beam.storage.names import absolute
from bpe_beam.transforms.counted_words import rules_of, totals_batch, without_files, word_batches
from bpe_beam.transforms.shuffles import SpreadTasks
from bpe_beam.workers.source_tables import NO_SOURCE

_TOTALS = ""  # the task of the totals; the others are parts as JSON


@beam.typehints.with_output_types(pa.RecordBatch)
class ReadCounts(beam.PTransform):
    """Reads a counts folder that `bpe-beam count`, `counts merge` or `WriteCounts` wrote.

    The output is batches as `CountWords` returns them: `source` (if the folder has sources),
    `word`, `count`, and places if the folder has them; with the normalizer, pre-tokenizer and
    special tokens of the folder, and its totals in a batch without rows.

    Memory: a worker has the words of one of 32 parts, of all sources.

    Args:
        folder: The counts folder. Its manifest is read when the pipeline is built; the run fails if
            the folder has changed since.
        storage: The storage client.

    Raises:
        UsageError: An argument of a wrong kind, or a folder that is no finished counts folder.
        DataError: A damaged manifest.
    """

    def __init__(self, folder: PathName, *, storage: Storage | None = None) -> None:
        super().__init__()
        self.folder = absolute(path_name(folder, "folder"))
        self.storage = storage or Storage()
        self.manifest, self.sha256 = read_hashed_manifest(self.storage, self.folder)

    def display_data(self) -> dict[str, Any]:
        """Return the settings for monitoring interfaces."""
        return {
            "folder": redact(self.folder),
            "normalizer": self.manifest.normalizer,
            "pretokenizer": self.manifest.pretokenizer,
            "special_tokens": " ".join(self.manifest.special_tokens),
            "by_source": self.manifest.sources is not None,
            "with_places": self.manifest.with_places,
            "unique_words": self.manifest.unique_words,
        }

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the counted words."""
        tasks = [msgspec.json.encode(part).decode() for part in self.manifest.parts]
        # Without what may be long, and is read from the folder.
        manifest = replace(without_files(self.manifest), parts=(), files=())
        reader = _Reader(self.storage, self.folder, manifest, self.sha256)
        return (
            begin
            | "Parts" >> SpreadTasks([_TOTALS, *tasks])
            | "ReadPart" >> beam.FlatMap(reader.read).with_output_types(pa.RecordBatch)
        )


class _Reader(NamedTuple):
    """Reads parts of a counts folder."""

    storage: Storage
    folder: str
    manifest: CountsManifest  # without parts and lists of files
    sha256: str

    def read(self, task: str) -> Iterable[pa.RecordBatch]:
        """Return the words of a part, or the totals."""
        return self._read_part(task) if task != _TOTALS else [self._read_totals()]

    def _read_totals(self) -> pa.RecordBatch:
        manifest, sha256 = read_hashed_manifest(self.storage, self.folder)
        if sha256 != self.sha256:
            raise DataError(
                f"ReadCounts: {redact(self.folder)} has changed since the pipeline was built: run "
                "it again"
            )
        return totals_batch(added_up([manifest]))

    def _read_part(self, task: str) -> Iterator[pa.RecordBatch]:
        part = json_structs.decode(task, CountsPart)
        rules = rules_of(self.manifest)
        for source, words in read_part(self.storage, self.folder, self.manifest, part).items():
            table = WordTable(with_places=self.manifest.with_places)
            for block in words.to_batches():
                table.add_block(block)
            yield from word_batches(table, source or NO_SOURCE, rules)

"""`WriteTokens` of a stream: folders `window-00000000`, `window-00000001`, … of shards.

The shards of a pane wait in `work/documents` of the output, under names that follow from the
window, the number of the pane and the documents. A window folder begins with its `__pane`, which
names its shards and is written once (`pane_log.py`): from then on its documents are written,
whoever finishes it. So a step that a runner repeats, a job that is started again and two jobs at
once write each shard into one window folder.

Documents with an id are written once for each source and window of time, also if a source sends
them again in another pane: a file in `work/ids` has the hashes of the ids of each shard.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
import msgspec
import numpy as np
from apache_beam.transforms import trigger
from apache_beam.transforms.window import BoundedWindow, GlobalWindow, GlobalWindows
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming
from msgspec.structs import replace
from numpy.typing import NDArray

from bpe_beam import json_structs
from bpe_beam.errors import DataError, NotFoundError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE
from bpe_beam.folders.job_json import JobRecord, differences
from bpe_beam.folders.output_folder import DOCUMENTS, recorded_job
from bpe_beam.folders.receipts import WORK
from bpe_beam.folders.run_folder import remove_all_in
from bpe_beam.shards.document_batches import document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import ArrangedCorpus, ArrangedPart, Shard
from bpe_beam.shards.windows import window_name
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.create_exclusive import write_once
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.arrange_tokens import Arranger
from bpe_beam.transforms.document_chunks import (
    GatheredDocuments,
    tokenless,
    unpacked,
    with_sources,
)
from bpe_beam.transforms.pane_log import Interval, PaneFile, PaneLog, PaneShard, ids_url
from bpe_beam.transforms.token_origin import WrittenTokens
from bpe_beam.transforms.tokens_folder import TokensFolder
from bpe_beam.workers.split_task import require_visible

JOB = "WriteTokens windows"


@dataclass(frozen=True)
class WindowsFolder(TokensFolder):
    """The folder of a stream; `number` is the fingerprint of its `__job`."""

    @property
    def shards_url(self) -> str:
        return self.path(f"{WORK}/{DOCUMENTS}")

    def begin(self, record: JobRecord) -> None:
        """Make the folder, or go on with one of the same stream."""
        storage = self.storage
        for name in (self.url, self.shards_url, self.path(f"{WORK}/ids")):
            storage.make_folder(name)
        if write_once(storage, self.path(JOB_FILE), record.to_bytes()):
            return
        found = recorded_job(storage, self.url)
        if found is None or found.fingerprint != record.fingerprint:
            other = [] if found is None else differences(found, record)
            raise UsageError(
                f"WriteTokens: the folder {redact(self.url)} has windows of a stream with other "
                f"settings ({'; '.join(f'{name}: {both}' for name, both in other)}): give another "
                "folder, or the settings of that one"
            )


def is_windows_folder(storage: Storage, url: str) -> bool:
    """Return whether a stream writes to a folder, which it may go on with."""
    record = recorded_job(storage, url)
    return record is not None and record.job == JOB


def windows_folder(
    plain: TokensFolder, tokens: beam.pvalue.PCollection, settings: dict[str, Any]
) -> tuple[WindowsFolder, JobRecord]:
    """Return the folder of a stream and its `__job`, after a check of the windows of its input."""
    windowing = tokens.windowing
    never = trigger.DefaultTrigger | trigger.AfterWatermark
    if isinstance(windowing.windowfn, GlobalWindows) and isinstance(windowing.triggerfn, never):
        raise UsageError(
            "WriteTokens: unbounded input in the global window never ends: put it into windows, "
            "such as beam.WindowInto(FixedWindows(600)), or set a trigger"
        )
    if windowing.accumulation_mode == trigger.AccumulationMode.ACCUMULATING:
        raise UsageError(
            "WriteTokens: the windows accumulate panes, so that each pane would be written again; "
            "use accumulation_mode=AccumulationMode.DISCARDING"
        )
    record = JobRecord(JOB, settings, MANIFEST_FILE, frozenset())
    folder = WindowsFolder(
        plain.storage, plain.url, plain.shards, plain.format, record.fingerprint, plain.arrangement
    )
    return folder, record


class WriteWindows(beam.PTransform):
    """Writes chunks of documents by shard to window folders; returns the URLs of their manifests.

    Args:
        folder: The folder of the stream.
        tokens: What is known of the ids.
        end: Writes the manifest of a window folder, see `write_tokens.py`.
    """

    def __init__(self, folder: WindowsFolder, tokens: WrittenTokens, end: Any) -> None:
        super().__init__()
        self.folder = folder
        self.tokens = tokens
        self.end = end

    def expand(self, chunks: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        write = beam.ParDo(_WritePane(self.folder, self.tokens))
        finish = beam.ParDo(_AddWindows(WindowWriter(self.folder, self.tokens, self.end)))
        return (
            chunks
            | "GatherShards" >> beam.GroupByKey()
            | "WriteShard" >> write.with_output_types(tuple[int, bytes])
            | "GatherWindow" >> beam.GroupByKey()
            | "AddWindow" >> finish.with_output_types(str)
        )


class _WritePane(beam.DoFn):
    """The packed documents of a shard in one pane to a shard that waits."""

    def __init__(self, folder: WindowsFolder, tokens: WrittenTokens) -> None:
        self.folder = folder
        self.tokens = tokens

    def process(
        self,
        element: tuple[int, Iterable[bytes]],
        window: BoundedWindow = beam.DoFn.WindowParam,
        pane: PaneInfo = beam.DoFn.PaneInfoParam,
    ) -> Iterator[tuple[int, bytes]]:
        folder, (shard, packed) = self.folder, element
        require_visible(folder.storage, folder.url)
        late = pane.timing == PaneInfoTiming.LATE
        with GatheredDocuments(unpacked(packed)) as documents:
            key = (*_interval(window), pane.index, shard, documents.digest.hex())
            name = hashlib.blake2b(repr(key).encode(), digest_size=16).hexdigest()
            row = documents.write(name, shard, folder, self.tokens.facts(None))
            has_ids = bool(documents.ids.any())
            if has_ids:
                data = documents.ids.astype("<u8").tobytes()
                folder.storage.write_bytes(ids_url(folder, name), data)
        if late:
            counters.counter("documents_late").inc(row.shard.documents)
        written = PaneShard(name, row, late, has_ids)
        yield 0, msgspec.json.encode(written, order="deterministic")


class _AddWindows(beam.DoFn):
    """The shards of a window to a window folder."""

    def __init__(self, writer: WindowWriter) -> None:
        self.writer = writer

    def process(
        self,
        element: tuple[int, Iterable[bytes]],
        window: BoundedWindow = beam.DoFn.WindowParam,
    ) -> Iterator[str]:
        shards = [json_structs.decode(data, PaneShard) for data in element[1]]
        yield from self.writer.add(shards, _interval(window))


def _interval(window: BoundedWindow) -> Interval:
    """Return the bounds of a window in microseconds; none of the global window."""
    if isinstance(window, GlobalWindow):
        return None, None
    start = getattr(window, "start", None)
    return None if start is None else start.micros, window.end.micros


_logs: dict[tuple[str, str], PaneLog] = {}
_logs_lock = threading.Lock()


class WindowWriter(NamedTuple):
    """Adds window folders to the folder of a stream, and finishes them."""

    folder: WindowsFolder
    tokens: WrittenTokens
    end: Any

    def add(self, shards: Sequence[PaneShard], interval: Interval) -> list[str]:
        """Add a window folder with the documents that no other has; finish all that are open.

        Returns the URLs of their manifests, and of folders that have some of the shards already.
        """
        folder = self.folder
        with _logs_lock:
            log = _logs.setdefault((folder.url, folder.number), PaneLog(folder))
        with log.lock:
            made: list[PaneShard] = []
            while True:
                log.read_new()
                new = {each.name: each for each in shards if each.name not in log.written}
                before = log.next
                try:
                    kept = self._new_documents([new[name] for name in sorted(new)], log, interval)
                except NotFoundError:
                    log.read_new()  # another process has written such a shard meanwhile
                    if log.next == before:
                        raise
                    continue
                made += kept
                if not kept:
                    break
                if log.append(kept, interval):
                    break
            if log.last is not None:  # its process may have ended before it removed these
                self._remove_temporary(log.last)
                log.last = None
            numbers = {log.written[each.name] for each in shards if each.name in log.written}
            for file in log.open:
                self._finish(file)
                numbers.add(file.number)
            log.open.clear()
            # All window folders are finished: what waits of these shards is there twice.
            self._remove([*shards, *made])
        return [folder.path(f"{window_name(number)}/{MANIFEST_FILE}") for number in sorted(numbers)]

    def _new_documents(
        self, shards: Sequence[PaneShard], log: PaneLog, interval: Interval
    ) -> list[PaneShard]:
        """Return shards without the documents whose ids the window of time has already.

        In the global window, which has no end, ids are not compared.
        """
        is_compared = interval[1] is not None and any(shard.has_ids for shard in shards)
        seen = log.ids(interval) if is_compared else np.zeros(0, np.uint64)
        kept = []
        for shard in shards:
            ids = log.ids_of(shard.name) if is_compared and shard.has_ids else None
            if ids is not None:
                first = np.zeros(ids.size, np.bool_)
                first[np.unique(ids, return_index=True)[1]] = True
                chosen = (ids == 0) | (first & ~np.isin(ids, seen))
                seen = np.union1d(seen, ids)
                repeated = int((~chosen).sum())
                if repeated:
                    counters.counter("documents_repeated").inc(repeated)
                    if repeated == chosen.size:
                        continue
                    shard = self._with_documents(shard, chosen)
            if shard.row.shard.documents:
                kept.append(shard)
        return kept

    def _with_documents(self, shard: PaneShard, chosen: NDArray[np.bool_]) -> PaneShard:
        """Write a shard with the chosen documents of another one."""
        folder, row = self.folder, shard.row
        facts = self.tokens.facts(None)
        source = shard_format(folder.shards_format)
        mask = hashlib.blake2b(chosen.tobytes(), digest_size=16).hexdigest()
        name = f"{shard.name[:16]}{mask[16:]}"
        origin = folder.shards_origin(facts.origin)
        at = folder.storage, folder.shards_url
        with source.writer(*at, name, facts.vocab_size, origin) as writer:
            if row.shard.files:
                with source.reader(*at, row.shard.name) as reader:
                    first = 0
                    for batch in document_batches(reader, labelled=source.labelled):
                        count = batch.offsets.size - 1
                        part = batch.filter(chosen[first : first + count])
                        first += count
                        writer.write_documents(part.ids, part.offsets, part.labels)
        files = writer.result()
        new = replace(
            row.shard,
            name=name,
            documents=int(chosen.sum()) if not row.shard.files else files.documents,
            tokens=files.tokens,
            text_bytes=0,
            files=tuple(files.files),
        )
        # The sums of sources and texts are of all documents: unknown for a part of them.
        written = replace(row, shard=new, sources=None, has_sizes=False)
        return replace(shard, row=written)

    def _finish(self, file: PaneFile) -> None:
        """Write the shards and the manifest of a window folder, maybe while another job does."""
        target = self._target(file)
        if not target.is_complete():
            try:
                self._write(target, file)
                counters.counter("windows_finished").inc()
            except DataError:
                if not target.is_complete():
                    raise
        self._remove_temporary(file)

    def _target(self, file: PaneFile) -> WindowFolder:
        return WindowFolder(self.folder.storage, self.folder.path(window_name(file.number)))

    def _remove_temporary(self, file: PaneFile) -> None:
        """Remove the temporary files of a window folder that is complete."""
        self._target(file).remove_work()
        self._remove(file.shards)

    def _write(self, target: WindowFolder, file: PaneFile) -> None:
        folder = self.folder
        self.end.say_what_is_left_out([each.row for each in file.shards])
        rows = sorted((each.row for each in file.shards), key=lambda row: row.shard.split)
        shards = with_sources(rows)
        with_tokens = [shard for shard in shards if shard.tokens]
        if folder.arrangement is None:
            named, moves = _named(with_tokens)
            target.move(folder.shards_url, moves)
            empty = (shard for shard in shards if not shard.tokens)
            numbered = (
                replace(shard, split=number) for number, shard in enumerate(empty, len(named))
            )
            self.end.complete([*named, *map(tokenless, numbered)], target=target)
            counters.counter("documents_written").inc(sum(each.documents for each in shards))
            counters.counter("tokens_written").inc(sum(each.tokens for each in shards))
            return
        if not with_tokens:
            corpus = ArrangedCorpus(sum(shard.text_bytes for shard in shards))
            part = ArrangedPart(
                settings=folder.arrangement,
                corpus=corpus,
                documents=sum(shard.documents for shard in shards),
                tokens=0,
            )
            self.end.complete([], target=target, arranged=part)
            return
        arranger = Arranger.of(folder, target.url, self.tokens)
        folder.storage.make_folder(target.path(WORK))
        arranged = arranger.run(shards)
        target.move(target.url, arranged.moves)
        self.end.complete(arranged.rows, target=target, arranged=arranged.part)

    def _remove(self, shards: Iterable[PaneShard]) -> None:
        """Remove shards that wait for no window folder any more."""
        suffixes = shard_format(self.folder.shards_format).suffixes
        names = {name for shard in shards for name in (shard.name, shard.row.shard.name)}
        for name in names:
            for suffix in suffixes:
                self.folder.storage.remove(
                    self.folder.storage.join(self.folder.shards_url, f"{name}{suffix}")
                )


@dataclass(frozen=True)
class WindowFolder:
    """A window folder that is being finished."""

    storage: Storage
    url: str

    def path(self, name: str) -> str:
        return self.storage.join(self.url, *name.split("/"))

    @property
    def manifest(self) -> str:
        return self.path(MANIFEST_FILE)

    def is_complete(self) -> bool:
        return self.storage.exists(self.manifest)

    def move(self, source: str, moves: Iterable[tuple[str, str]]) -> None:
        """Move files into the folder, unless they were moved before."""
        for name, final in moves:
            self.storage.move(self.storage.join(source, *name.split("/")), self.path(final))

    def complete(self, manifest: bytes, sizes: dict[str, int], small: dict[str, bytes]) -> str:
        """Write the small files and the manifest."""
        for name, size in sizes.items():
            if self.storage.size(self.path(name)) != size:
                raise DataError(f"{redact(self.path(name))}: changed after it was written")
        for name, data in small.items():
            self.storage.write_bytes(self.path(name), data)
        self.storage.sync_folders(self.url)
        self.storage.write_bytes(self.manifest, manifest)
        self.storage.sync_folders(self.url)
        return self.manifest

    def remove_work(self) -> None:
        """Remove temporary files."""
        remove_all_in(self.storage, self.path(WORK))
        self.storage.remove_folder_if_empty(self.path(WORK))


def _named(shards: Sequence[Shard]) -> tuple[list[Shard], list[tuple[str, str]]]:
    """Return shards with their final names, and the current and final names of their files."""
    named, moves = [], []
    for index, shard in enumerate(shards):
        name = shard_name(index, len(shards))
        files = []
        for file in shard.files:
            final = f"{name}.{file.name.partition('.')[2]}"
            moves.append((file.name, final))
            files.append(replace(file, name=final))
        named.append(replace(shard, name=name, split=index, files=tuple(files)))
    return named, moves

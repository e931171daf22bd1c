"""Arrange the documents of shards: in a seeded order, in sequences, for training and validation.

1. A worker measures the documents of one shard: their number, tokens and lengths, of each part.
2. The driver adds the measures up. So each worker knows what is before its shard.
3. A worker cuts the documents of its shard into pieces and writes them, ordered by the new shard
   that they are for, to one file; see `_PiecesFile`.
4. A worker reads the pieces of one new shard from all those files, and writes it.

Only names of files travel. A worker has the pieces of one new shard in memory, once, or
BUFFER_BYTES of pieces to be written. Every step writes the same bytes however often it runs.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bpe_beam import json_structs, progress
from bpe_beam.corpus.batches import integers
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK, TaskFolder
from bpe_beam.shards.arrangement import Arrangement
from bpe_beam.shards.document_batches import DocumentBatch, document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.document_table import (
    ID_HASH,
    SEQUENCE_LENGTHS,
    TEXT_BYTES,
    TEXT_HASH,
)
from bpe_beam.shards.formats.id_stream import spool_errors
from bpe_beam.shards.formats.interface import LabelledReader, ShardOrigin, ShardWriter
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.shards.layouts import (
    BestFit,
    Concatenated,
    Layout,
    WholeDocuments,
    chunks_of,
    shuffled,
)
from bpe_beam.shards.packing import PackingPlan, plan_best_fit
from bpe_beam.shards.shard_rows import PartTexts, SourceTotals
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.storage.json_file import Count
from bpe_beam.workers import metric_names
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.document_hashes import for_validation, sampled_texts
from bpe_beam.workers.measured import TaskResult
from bpe_beam.workers.source_tables import add_token_totals
from bpe_beam.workers.split_task import require_visible, task_name
from bpe_beam.workers.token_counter import TABLE_BYTES, IdColumns, TokenCounter, id_columns
from bpe_beam.workers.unused_memory import release_unused_memory

STAGE = "arrange"
"""The progress stage, in tokens, that gets reports: each token is read twice."""

BUFFER_BYTES = 32 << 20
"""The bytes of pieces that a worker has in memory before it writes them."""

_MOST_UNUSED = 128 << 20
"""The freed bytes that malloc may keep when pieces are written: getting the buffers of each shard
from the system again takes a quarter of the job's system time. Two workers free about as much."""

_BLOCK_TOKENS = 1 << 20
_COPIED_BYTES = 4 << 20

_LABELS = pa.schema(
    [("id", pa.large_string()), ("source", pa.large_string()), ("text_bytes", pa.int64())]
)

RANKS = "ranks.bin"
"""The file of the numbers of chunks of each length, before each shard and in total."""

_LOST = (
    "a piece of a document is missing or doubled: the runner lost a result, or a file of this run "
    "was changed; run this job again"
)


class PartSums(Struct, frozen=True):
    """Documents of a part, and their tokens."""

    documents: Count
    tokens: Count


class MeasureStats(Struct, frozen=True):
    """What a receipt says of a shard that was measured.

    Attributes:
        made_of: The SHA-256 of the manifest of the documents.
        parts: The sums of each part.
        texts: The texts of each part; empty if documents are not divided.
    """

    made_of: str
    parts: tuple[PartSums, ...]
    texts: tuple[PartTexts, ...]


class PiecesStats(Struct, frozen=True):
    """What a receipt says of a file of pieces.

    Attributes:
        made_of: See `MeasureStats`.
        table_at: The byte at which the table begins, see `_PiecesFile`.
    """

    made_of: str
    table_at: Count


class NewShardStats(Struct, frozen=True):
    """What a receipt says of a new shard.

    Attributes:
        made_of: See `MeasureStats`.
        units: The number of its documents or sequences.
        tokens: The number of its tokens, padding included.
        padding: The number of its padding tokens.
    """

    made_of: str
    units: Count
    tokens: Count
    padding: Count


class Pieces(Struct, frozen=True):
    """Where the pieces of a shard are: a URL, and the stats of its receipt."""

    url: str
    table_at: int


@dataclass(frozen=True)
class PartPlan:
    """What is known of a part once all shards are measured.

    Attributes:
        name: `train`, `validation` or empty.
        units: The number of its documents or sequences.
        starts: The position of the first one of each new shard.
    """

    name: str
    units: int
    starts: tuple[int, ...]

    @staticmethod
    def even(name: str, units: int, shards: int) -> PartPlan:
        """Return a plan of shards with about as many units each."""
        return PartPlan(name, units, tuple(units * shard // shards for shard in range(shards)))

    @staticmethod
    def by_tokens(name: str, measured: Sequence[PartSums], shards: int) -> PartPlan:
        """Return a plan of shards with about as many tokens each, of documents in their order.

        Documents of one measured shard count as equally long.
        """
        ends = [0, *itertools.accumulate(each.tokens for each in measured)]
        before = [0, *itertools.accumulate(each.documents for each in measured)]
        starts = {0}
        for shard in range(1, shards):
            token = ends[-1] * shard // shards
            index = bisect_right(ends, token) - 1
            rest = (token - ends[index]) * measured[index].documents
            starts.add(before[index] + rest // measured[index].tokens)
        return PartPlan(name, before[-1], tuple(sorted(starts)))

    @property
    def shards(self) -> int:
        """The number of new shards."""
        return len(self.starts)

    def bounds(self, shard: int) -> tuple[int, int]:
        """Return the first position of a new shard, and the position behind its last."""
        return self.starts[shard], (*self.starts, self.units)[shard + 1]

    def shard_of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[n]: the new shard that has each position."""
        return np.searchsorted(np.array(self.starts), positions, side="right") - 1

    def task(self, shard: int) -> str:
        """Return the name of the task of a new shard."""
        return task_name(self.name or "shard", shard, self.shards)


@dataclass(frozen=True)
class ArrangeTask:
    """What the workers need to know; plain and picklable.

    Attributes:
        folder: The folder of the run.
        documents: The folder of the shards of documents.
        documents_format: Their format.
        made_of: The SHA-256 of their manifest.
        shards: The number of these shards.
        count: The number of their documents.
        arrangement: What is to be made.
        pad: The id of the padding token; None: no padding.
        shard_format: The format of the new shards.
        vocab_size: One more than the tokenizer's greatest id.
        origin: What made the tokens.
        ranks: The file of the numbers of chunks before each shard; see `write_ranks`.
        encoding: Has the tokenizer.
        by_source: Whether the documents have sources.
        parts: The plans of the parts; empty until all shards are measured.
    """

    folder: TaskFolder
    documents: str
    documents_format: str
    made_of: str
    shards: int
    count: int
    arrangement: Arrangement
    pad: int | None
    shard_format: str
    vocab_size: int
    origin: ShardOrigin
    ranks: str
    encoding: Encoding
    by_source: bool
    parts: tuple[PartPlan, ...] = ()

    @property
    def finds_overlap(self) -> bool:
        """Whether texts of both parts are compared: a division by texts leaves none in both."""
        arrangement = self.arrangement
        return arrangement.validation_share is not None and arrangement.validation_by == "id"

    @property
    def with_labels(self) -> bool:
        """Whether the ids and sources of documents go into the new shards."""
        labelled = shard_format(self.shard_format).labelled_writer is not None
        return labelled and self.arrangement.sequence_length is None

    @property
    def id_type(self) -> np.dtype[Any]:
        """The type of ids in files of pieces."""
        return np.dtype(np.uint16 if self.vocab_size <= 1 << 16 else np.uint32)

    @property
    def pieces_schema(self) -> pa.Schema:
        """The columns of files of pieces."""
        columns = [
            ("position", pa.int64()),
            ("offset", pa.int64()),
            ("ids", pa.large_binary()),  # bytes are moved faster than lists
        ]
        return pa.schema([*columns, *(_LABELS if self.with_labels else ())])


class DocumentsShard(Struct, frozen=True):
    """A shard of documents: a task.

    Attributes:
        index: Its number among the shards, from 0.
        name: Its name.
        before: The sums of each part over the shards before; empty until all are measured.
    """

    index: int
    name: str
    before: tuple[PartSums, ...] = ()


class NewShard(Struct, frozen=True):
    """A new shard: a task. Its part and its number there."""

    part: int
    shard: int


def measure_shard(task: ArrangeTask, element: str) -> TaskResult:
    """Measure the documents of a shard, and write the receipt.

    If documents are divided, the tokens of each part are counted, too.

    Returns:
        The task's name as the output.
    """
    shard = json_structs.decode(element, DocumentsShard)
    folder = task.folder
    require_visible(folder.storage, folder.url, task.documents)
    length = task.arrangement.sequence_length
    parts = task.arrangement.parts
    sums = [PartSums(0, 0) for _ in parts]
    histogram = np.zeros((len(parts), (length or 0) + 1), np.int64)
    name = task_name("measure", shard.index, task.shards)
    counters = [] if task.arrangement.validation_share is None else _part_counters(task)
    texts_compared: list[NDArray[np.uint64]] = []
    for part_lengths in _lengths(task, shard, counters, texts_compared):
        for number, lengths in enumerate(part_lengths):
            old = sums[number]
            sums[number] = PartSums(old.documents + lengths.size, old.tokens + int(lengths.sum()))
            if task.arrangement.is_best_fit and length is not None:
                chunks = chunks_of(lengths, length)[1]
                histogram[number] += np.bincount(chunks, minlength=length + 1)
    files = []
    if task.arrangement.is_best_fit:
        data = histogram.astype("<i8").tobytes()
        files.append(FileInfo.of(f"{WORK}/{name}.bin", data))
        folder.storage.write_bytes(folder.path(files[0].name), data)
    if task.finds_overlap:
        data = b"".join(each.astype("<u8").tobytes() for each in texts_compared)
        files.append(FileInfo.of(f"{WORK}/{texts_name(name)}", data))
        folder.storage.write_bytes(folder.path(files[-1].name), data)
    files += [each.write(folder, part_task(name, each.part)) for each in counters]
    texts = tuple(each.texts() for each in counters)
    folder.write_receipt(name, files, MeasureStats(task.made_of, tuple(sums), texts))
    return TaskResult([name])


def scatter_shard(task: ArrangeTask, element: str) -> TaskResult:
    """Write the pieces of a shard's documents, ordered by new shards, and the receipt.

    Returns:
        A `Pieces` as JSON as the output.
    """
    release_unused_memory(_MOST_UNUSED)
    shard = json_structs.decode(element, DocumentsShard)
    folder = task.folder
    require_visible(folder.storage, folder.url, task.documents)
    name = task_name("pieces", shard.index, task.shards)
    file_name = f"{WORK}/{name}.bin"
    layouts = [_layout(task, number, shard) for number in range(len(task.parts))]
    firsts = np.cumsum([0, *(part.shards for part in task.parts)])
    with (
        folder.storage.create(folder.path(file_name)) as stored,
        _PiecesFile(stored, task.pieces_schema, int(firsts[-1])) as file,
    ):
        for batch in _documents(task, shard.name):
            for number, documents in enumerate(_parts(task, batch)):
                pieces = layouts[number].pieces(np.diff(documents.offsets))
                part, seed = task.parts[number], task.arrangement.shuffle_seed
                positions = shuffled(pieces.units, part.units, seed)
                columns = [
                    pa.array(positions),
                    pa.array(pieces.offsets),
                    _stored_ids(documents.ids, pieces.lengths, task.id_type),
                ]
                if task.with_labels and documents.labels is not None:
                    labels = documents.labels.take(pa.array(pieces.documents))
                    columns += [labels.column(each.name).cast(each.type) for each in _LABELS]
                rows = pa.RecordBatch.from_arrays(columns, schema=task.pieces_schema)
                file.add(rows, firsts[number] + part.shard_of(positions))
            progress.report(STAGE, done=batch.ids.size)
        table_at = file.finish()
    info = FileInfo.written(file_name, file.file)
    folder.write_receipt(name, [info], PiecesStats(task.made_of, table_at))
    found = Pieces(folder.path(file_name), table_at)
    return TaskResult([msgspec.json.encode(found).decode()])


def write_new_shard(
    task: ArrangeTask, known: Sequence[str], scattered: Sequence[str], element: str
) -> TaskResult:
    """Write a new shard of all its pieces, and the receipt.

    Returns:
        The task's name as the output, and metrics.
    """
    release_unused_memory()
    new = json_structs.decode(element, NewShard)
    folder = task.folder
    require_visible(folder.storage, folder.url)
    part = task.parts[new.part]
    bucket = new.shard + sum(each.shards for each in task.parts[: new.part])
    name = part.task(new.shard)
    files = [json_structs.decode(each, Pieces) for each in (*known, *scattered)]
    check_pieces(files, task.shards)
    table = _all_pieces(task, files, bucket)
    units = _Units(table, task.id_type.itemsize, *part.bounds(new.shard))
    del table
    format_ = shard_format(task.shard_format)
    target = folder.storage, folder.path(WORK), name, task.vocab_size
    with format_.open_writer(*target, task.origin) as writer:
        padding = _write_units(task, writer, units)
    shard = writer.result()
    files_written = [replace(file, name=f"{WORK}/{file.name}") for file in shard.files]
    stats = NewShardStats(task.made_of, units.lengths.size, shard.tokens, padding)
    folder.write_receipt(name, files_written, stats)
    counts = {
        metric_names.DOCUMENTS_WRITTEN: shard.documents,
        metric_names.TOKENS_WRITTEN: shard.tokens,
    }
    return TaskResult([name], counts)


def check_pieces(files: Sequence[Pieces], shards: int) -> None:
    """Check that every shard's pieces are there, once: their end would not be missed otherwise."""
    names = {each.url.rpartition("/")[2] for each in files}
    if not len(files) == len(names) == shards:
        raise DataError(_LOST)


def write_ranks(file: BinaryIO, measured: Iterator[bytes], size: int) -> NDArray[np.int64]:
    """Write the numbers of chunks of each length before each shard, and in total.

    Returns:
        int64[size], the numbers in total.
    """
    total = np.zeros(size, np.int64)
    for data in measured:
        file.write(total.astype("<i8").tobytes())
        total += np.frombuffer(data, "<i8")
    file.write(total.astype("<i8").tobytes())
    return total


def _documents(task: ArrangeTask, name: str) -> Iterator[DocumentBatch]:
    source = shard_format(task.documents_format)
    with source.reader(task.folder.storage, task.documents, name) as reader:
        has_labels = source.labelled_writer is not None
        labels_of = cast(LabelledReader, reader) if has_labels else None
        yield from document_batches(reader, labels_of=labels_of)


class _PartCounter:
    """Counts the texts and the tokens of a part of a shard's documents."""

    def __init__(self, part: str, columns: IdColumns, by_source: bool, table_bytes: int) -> None:
        self.part = part
        self._by_source = by_source
        self._tokens = TokenCounter(columns, by_source, table_bytes=table_bytes)
        self._text_bytes = 0
        self._sources: dict[str, Counter[str]] = {}

    def add(self, batch: DocumentBatch) -> None:
        """Add documents."""
        assert batch.labels is not None
        lists = pa.LargeListArray.from_arrays(integers(batch.offsets), integers(batch.ids))
        self._tokens.add(batch.labels, lists)
        self._text_bytes += int(batch.labels.column(TEXT_BYTES).to_numpy().sum())
        if self._by_source:
            add_token_totals(self._sources, batch.labels, batch.offsets)

    def texts(self) -> PartTexts:
        """Return what was added."""
        sources = {name: SourceTotals(**row) for name, row in sorted(self._sources.items())}
        return PartTexts(self._text_bytes, sources if self._by_source else None)

    def write(self, folder: TaskFolder, task: str) -> FileInfo:
        """See `TokenCounter.write`."""
        return self._tokens.write(folder, task)


def _part_counters(task: ArrangeTask) -> list[_PartCounter]:
    columns, parts = id_columns(task.encoding.tokenizer()), task.arrangement.parts
    size = TABLE_BYTES // len(parts)
    return [_PartCounter(part, columns, task.by_source, size) for part in parts]


def texts_name(task: str) -> str:
    """Return the name of the file of hashes of texts that a task writes, see `sampled_texts`."""
    return f"{task}-texts.bin"


def part_task(task: str, part: str) -> str:
    """Return the name under which a task of a shard writes the token counts of a part."""
    return f"{task}-{part}"


def _lengths(
    task: ArrangeTask,
    shard: DocumentsShard,
    counters: Sequence[_PartCounter],
    compared: list[NDArray[np.uint64]],
) -> Iterator[list[NDArray[np.int64]]]:
    """Yield the lengths of documents of each part. Without a validation share no id is read.

    If the overlap is to be counted, the hashes of texts are appended to `compared`.
    """
    if task.arrangement.validation_share is not None:
        for batch in _documents(task, shard.name):
            parts = _parts(task, batch)
            if task.finds_overlap:
                assert batch.labels is not None
                hashes = batch.labels.column(TEXT_HASH).to_numpy()
                compared.append(sampled_texts(hashes, _for_validation(task, batch), task.count))
            for counter, part in zip(counters, parts, strict=True):
                counter.add(part)
            yield [np.diff(part.offsets) for part in parts]
        return
    source = shard_format(task.documents_format)
    with source.reader(task.folder.storage, task.documents, shard.name) as reader:
        for first in range(0, len(reader), _BLOCK_TOKENS):
            stop = min(first + _BLOCK_TOKENS, len(reader))
            yield [reader.lengths(first, stop).astype(np.int64)]


def _parts(task: ArrangeTask, batch: DocumentBatch) -> list[DocumentBatch]:
    """Return the documents of each part.

    A long document that `tokenize` has split stays whole: its parts have its hash.
    """
    if task.arrangement.validation_share is None:
        return [batch]
    chosen = _for_validation(task, batch)
    return [_only(batch, np.flatnonzero(~chosen)), _only(batch, np.flatnonzero(chosen))]


def _for_validation(task: ArrangeTask, batch: DocumentBatch) -> NDArray[np.bool_]:
    """Return bool[n]: which documents are for validation."""
    arrangement = task.arrangement
    assert batch.labels is not None
    assert arrangement.validation_share is not None
    column = TEXT_HASH if arrangement.validation_by == "text" else ID_HASH
    return for_validation(batch.labels.column(column).to_numpy(), arrangement.validation_share)


def _only(batch: DocumentBatch, documents: NDArray[np.int64]) -> DocumentBatch:
    """Return some documents of a batch."""
    lengths = np.diff(batch.offsets)
    chosen = np.zeros(lengths.size, np.bool_)
    chosen[documents] = True
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[documents])))
    labels = None if batch.labels is None else batch.labels.take(pa.array(documents))
    return DocumentBatch(batch.ids[np.repeat(chosen, lengths)], offsets, labels)


def _layout(task: ArrangeTask, part: int, shard: DocumentsShard) -> Layout:
    arrangement, before = task.arrangement, shard.before[part]
    if arrangement.sequence_length is None:
        return WholeDocuments(before.documents)
    if not arrangement.is_best_fit:
        return Concatenated(arrangement.sequence_length, before.tokens)
    plan = _plan(_ranks(task, task.shards, part).tobytes(), arrangement.max_documents_per_sequence)
    return BestFit(plan, _ranks(task, shard.index, part))


@functools.lru_cache(maxsize=2)
def _plan(histogram: bytes, max_chunks: int | None) -> PackingPlan:
    """Return the plan of a part, which every process makes for itself."""
    return plan_best_fit(np.frombuffer(histogram, np.int64), max_chunks)


def _ranks(task: ArrangeTask, shard: int, part: int) -> NDArray[np.int64]:
    """Return int64[N + 1], the numbers of chunks of a part before a shard; see `write_ranks`."""
    assert task.arrangement.sequence_length is not None
    size = 8 * (task.arrangement.sequence_length + 1)
    file = RangeFile(task.folder.storage, task.ranks)
    try:
        data = file.read((shard * len(task.parts) + part) * size, size)
    finally:
        file.close()
    return np.frombuffer(data, "<i8").astype(np.int64)


def _stored_ids(
    ids: NDArray[np.uint32], lengths: NDArray[np.int64], kind: np.dtype[Any]
) -> pa.Array:
    """Return the ids of pieces as a column of files of pieces."""
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))) * kind.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(ids.astype(kind))]
    return pa.Array.from_buffers(pa.large_binary(), lengths.size, buffers)


def _ids_of(column: pa.Array, kind: np.dtype[Any]) -> NDArray[np.uint32]:
    """Return the ids of all pieces of such a column, one after the other."""
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int64)[column.offset : column.offset + len(column) + 1]
    stored = memoryview(data)[bounds[0] : bounds[-1]] if data is not None else b""
    return np.frombuffer(stored, kind).astype(np.uint32)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return all rows of a table."""
    found = table.combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], schema=table.schema)


class _PiecesFile:
    """A file of pieces while it is written. A context manager.

    The pieces are ordered by the new shard that they are for, as Arrow record batches. Behind all
    is a table, int64[shards + 1]: the first byte of each new shard's pieces, and the end. Pieces of
    more than BUFFER_BYTES wait in a local temporary file, so that those of one new shard are one
    range however many there are.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema, shards: int) -> None:
        self.file = HashingFile(file)
        self._schema = schema
        self._shards = shards
        self._rows: list[pa.RecordBatch] = []
        self._buckets: list[NDArray[np.int64]] = []
        self._bytes = 0
        self._opened = ExitStack()
        self._spool: BinaryIO | None = None
        self._tables: list[NDArray[np.int64]] = []

    def __enter__(self) -> _PiecesFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def add(self, rows: pa.RecordBatch, buckets: NDArray[np.int64]) -> None:
        """Add pieces.

        Args:
            buckets: int64[n], the number of each one's new shard.
        """
        if not rows.num_rows:
            return
        self._rows.append(rows)
        self._buckets.append(buckets)
        self._bytes += rows.nbytes
        if self._bytes > BUFFER_BYTES:
            with self._spooling():
                self._spool = self._spool or self._new_spool()
                self._tables.append(self._write_rows(self._spool))

    def finish(self) -> int:
        """Write all pieces and the table; return where it begins."""
        if self._spool is None:
            table = self._write_rows(self.file)
        else:
            with self._spooling():
                self._tables.append(self._write_rows(self._spool))
            table = self._merge(self._spool)
        table_at = self.file.bytes
        self.file.write(table.astype("<i8").tobytes())
        return table_at

    def _write_rows(self, file: BinaryIO | HashingFile) -> NDArray[np.int64]:
        """Write the gathered pieces by new shards; return where each shard's begin, and the end."""
        at = self._tables[-1][-1] if self._tables else 0
        starts = np.full(self._shards + 1, at, np.int64)
        if not self._rows:
            return starts
        rows = _one_batch(pa.Table.from_batches(self._rows, schema=self._schema))
        buckets = np.concatenate(self._buckets)
        self._rows, self._buckets, self._bytes = [], [], 0
        order = np.argsort(buckets, kind="stable")
        bounds = np.searchsorted(buckets[order], np.arange(self._shards + 1))
        for bucket in range(self._shards):
            chosen = order[bounds[bucket] : bounds[bucket + 1]]
            if chosen.size:
                block = rows.take(pa.array(chosen)).serialize()
                file.write(block)
                at += block.size
            starts[bucket + 1] = at
        return starts

    def _merge(self, spool: BinaryIO) -> NDArray[np.int64]:
        """Copy the pieces of each new shard to the file; return where they begin, and the end."""
        starts = np.zeros(self._shards + 1, np.int64)
        for bucket in range(self._shards):
            for table in self._tables:
                start, stop = table[bucket : bucket + 2].tolist()
                if start < stop:
                    with self._spooling():
                        spool.seek(start)
                        block = spool.read(stop - start)
                    self.file.write(block)
            starts[bucket + 1] = self.file.bytes
        return starts

    def _new_spool(self) -> BinaryIO:
        return self._opened.enter_context(cast(BinaryIO, tempfile.TemporaryFile()))

    def _spooling(self) -> AbstractContextManager[None]:
        return spool_errors("the pieces of documents", "about the bytes of the shard's ids")


def _all_pieces(task: ArrangeTask, files: Sequence[Pieces], bucket: int) -> pa.Table:
    """Return the pieces of a new shard, whose ids are one array.

    What was read is copied in blocks of about _COPIED_BYTES, so that ids are in memory once.
    """
    schema = task.pieces_schema
    ids = _GrowingIds(task.arrangement.shard_tokens * task.id_type.itemsize * 5 // 4)
    others = [schema.empty_table().drop_columns("ids")]
    for batches in _blocks_of(_read_pieces(task, files, bucket)):
        for each in batches:
            ids.add(each.column("ids"))
        rows = pa.Table.from_batches(batches).drop_columns("ids")
        others.append(rows.take(pa.array(np.arange(len(rows)))))
    at = schema.get_field_index("ids")
    return pa.concat_tables(others).add_column(at, schema.field(at), ids.column())


def _blocks_of(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield the batches in lists of about _COPIED_BYTES; the last list has the rest."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size > _COPIED_BYTES:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


class _GrowingIds:
    """Columns of ids one after the other, in one array."""

    def __init__(self, capacity: int) -> None:
        self._bytes = np.empty(capacity, np.uint8)
        self._size = 0
        self._ends: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]

    def add(self, column: pa.Array) -> None:
        """Append a column of a file of pieces."""
        _, ends, data = column.buffers()
        bounds = np.frombuffer(ends, np.int64)[column.offset : column.offset + len(column) + 1]
        self._ends.append(bounds[1:] - bounds[0] + self._size)
        size = self._size + int(bounds[-1] - bounds[0])
        if size > self._bytes.size:
            larger = np.empty(2 * size, np.uint8)
            larger[: self._size] = self._bytes[: self._size]
            self._bytes = larger
        if data is not None:
            added = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
            self._bytes[self._size : size] = added
        self._size = size

    def column(self) -> pa.Array:
        """Return all as one column."""
        ends = np.concatenate(self._ends)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(self._bytes[: self._size])]
        return pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, buffers)


def _read_pieces(
    task: ArrangeTask, files: Sequence[Pieces], bucket: int
) -> Iterator[pa.RecordBatch]:
    """Yield the pieces of a new shard."""
    for each in files:
        with ExitStack() as stack:
            file = RangeFile(task.folder.storage, each.url)
            stack.callback(file.close)
            entry = file.read(each.table_at + 8 * bucket, 16)
            start, stop = np.frombuffer(entry, "<i8").tolist()
            blocks = pa.BufferReader(file.read(start, stop - start))
            while blocks.tell() < blocks.size():
                yield pa.ipc.read_record_batch(pa.ipc.read_message(blocks), task.pieces_schema)


class _Units:
    """The units of a new shard, over its pieces in any order."""

    def __init__(self, table: pa.Table, id_bytes: int, first: int, stop: int) -> None:
        self._rows = _one_batch(table)
        positions, offsets, sizes = (
            column.to_numpy()
            for column in (
                self._rows.column("position"),
                self._rows.column("offset"),
                pc.binary_length(self._rows.column("ids")),
            )
        )
        lengths = sizes // id_bytes
        self._order = np.lexsort((lengths, offsets, positions))
        positions, offsets = positions[self._order] - first, offsets[self._order]
        self._piece_lengths = lengths[self._order]
        self._begins = np.searchsorted(positions, np.arange(stop - first + 1))
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(self._piece_lengths)))
        self.lengths = np.diff(ends[self._begins])
        # A piece begins where the piece before it ends, and the first one at 0.
        whole = self._begins[0] == 0 and self._begins[-1] == positions.size
        if (
            not whole
            or (np.diff(self._begins) == 0).any()
            or ((ends[:-1] - ends[self._begins[positions]] != offsets).any())
        ):
            raise DataError(_LOST)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of units with about _BLOCK_TOKENS tokens each."""
        ends = np.cumsum(self.lengths)
        start = 0
        while start < ends.size:
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + _BLOCK_TOKENS, side="right"))
            yield start, max(stop, start + 1)
            start = max(stop, start + 1)

    def rows(self, start: int, stop: int) -> pa.RecordBatch:
        """Return the pieces of some units, in order."""
        chosen = self._order[self._begins[start] : self._begins[stop]]
        return self._rows.take(pa.array(chosen))

    def piece_lengths(self, start: int, stop: int) -> pa.ListArray:
        """Return the tokens of each piece of some units, a list a unit."""
        begins = self._begins[start : stop + 1]
        lengths = self._piece_lengths[begins[0] : begins[-1]].astype(np.int32)
        offsets = pa.array((begins - begins[0]).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, pa.array(lengths))


def _labels(
    task: ArrangeTask, units: _Units, rows: pa.RecordBatch, start: int, stop: int
) -> pa.RecordBatch | None:
    """Return what the new shards' format stores of some units beside ids."""
    if task.with_labels:
        return rows.select(_LABELS.names)
    if shard_format(task.shard_format).labelled_writer is None:
        return None
    lengths = units.piece_lengths(start, stop)
    return pa.RecordBatch.from_arrays([lengths], [SEQUENCE_LENGTHS])


def _write_units(task: ArrangeTask, writer: ShardWriter, units: _Units) -> int:
    """Write all units; return the number of padding tokens."""
    length = task.arrangement.sequence_length
    padding = 0
    for start, stop in units.blocks():
        rows, lengths = units.rows(start, stop), units.lengths[start:stop]
        ids = _ids_of(rows.column("ids"), task.id_type)
        labels = _labels(task, units, rows, start, stop)
        progress.report(STAGE, done=ids.size, **{task.origin.unit: stop - start})
        if length is not None and task.pad is not None:
            filled = np.full((stop - start, length), task.pad, np.uint32)
            filled[np.arange(length) < lengths[:, np.newaxis]] = ids
            padding += filled.size - ids.size
            ids, lengths = filled.reshape(-1), np.full(stop - start, length)
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        writer.write_documents(ids, offsets, labels)
    return padding

"""The second step: write the slices of a shard's documents by the new shards that they are for.

A slice is a document, or the range of it that one sequence has. The slices of a shard come into one
block file, in a block for each new shard. A row has the position of the new document or sequence
that the slice is for, the offset of the slice there, its ids as bytes, and the labels of the
document if the new shards store them. A block is Arrow record batches. After the blocks comes a
table, int64[shards + 1]: the first byte of the block of each new shard, and the end.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam import json_structs, progress
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK
from bpe_beam.shards import packing
from bpe_beam.shards.document_batches import bounds_of
from bpe_beam.shards.formats.spool import spool_errors
from bpe_beam.shards.stored_shard import RangeFile
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.workers.arrange.measure import divided, read_documents
from bpe_beam.workers.arrange.task import LABELS, STAGE, ArrangeTask, DocumentsShard
from bpe_beam.workers.split_task import require_visible, task_name
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.unused_memory import release_unused_memory

if TYPE_CHECKING:
    from typing_extensions import Self

BUFFER_BYTES = 32 << 20  # the bytes of slices that a worker has in memory before it writes them

MAX_UNUSED_BYTES = 128 << 20
"""The freed bytes that malloc may keep while slices are written: two workers free about as much.
Getting the buffers of each shard from the system again takes a quarter of the job's system time."""


def scatter_shard(task: ArrangeTask, element: str) -> TaskResult:
    """Write the block file of a shard's documents, and the receipt; the output is its URL."""
    release_unused_memory(MAX_UNUSED_BYTES)
    shard = json_structs.decode(element, DocumentsShard)
    folder = task.folder
    require_visible(folder.storage, folder.url, task.documents)
    name = task_name("scatter", shard.index, task.shards)
    file_name = f"{WORK}/{name}.bin"
    layouts = [layout_of(task, number, shard) for number in range(len(task.parts))]
    firsts = np.cumsum([0, *(part.shards for part in task.parts)])
    with (
        folder.storage.create(folder.path(file_name)) as stored,
        BlockFileWriter(stored, task.slices_schema, task.new_shards) as file,
    ):
        for batch in read_documents(task, shard.name):
            for number, documents in enumerate(divided(task, batch)):
                slices = layouts[number].slices(np.diff(documents.offsets))
                part, seed = task.parts[number], task.arrangement.shuffle_seed
                positions = packing.shuffled(slices.rows, part.rows, seed)
                columns = [
                    pa.array(positions),
                    pa.array(slices.offsets),
                    id_column(documents.ids, slices.lengths, task.id_type),
                ]
                if task.with_labels and documents.labels is not None:
                    labels = documents.labels.take(pa.array(slices.documents))
                    columns += [labels.column(each.name).cast(each.type) for each in LABELS]
                rows = pa.RecordBatch.from_arrays(columns, schema=task.slices_schema)
                file.add(rows, firsts[number] + part.shard_of(positions))
            progress.report(STAGE, done=batch.ids.size)
        file.finish()
    info = FileInfo.written(file_name, file.file)
    folder.write_receipt(name, [info], {"made_of": task.made_of})
    return TaskResult([folder.path(file_name)])


def layout_of(task: ArrangeTask, part: int, shard: DocumentsShard) -> packing.Layout:
    """Return what divides the documents of a part of a measured shard into slices."""
    arrangement, before = task.arrangement, shard.before[part]
    if arrangement.sequence_length is None:
        return packing.WholeDocuments(before.documents)
    if not arrangement.is_best_fit:
        return packing.Concatenated(arrangement.sequence_length, before.tokens)
    plan = _plan(_ranks(task, task.shards, part).tobytes(), arrangement.max_documents_per_sequence)
    return packing.BestFit(plan, _ranks(task, shard.index, part))


@functools.lru_cache(maxsize=2)
def _plan(histogram: bytes, max_slices: int | None) -> packing.PackingPlan:
    """Return the plan of a part; every process makes its own."""
    return packing.plan_best_fit(np.frombuffer(histogram, np.int64), max_slices)


def _ranks(task: ArrangeTask, shard: int, part: int) -> NDArray[np.int64]:
    """Return int64[N + 1], the numbers of slices of a part before a shard; see `write_ranks`."""
    assert task.arrangement.sequence_length is not None
    size = 8 * (task.arrangement.sequence_length + 1)
    with RangeFile(task.folder.storage, task.ranks) as file:
        data = file.read((shard * len(task.parts) + part) * size, size)
    return np.frombuffer(data, "<i8").astype(np.int64)


def id_column(ids: NDArray[np.uint32], lengths: NDArray[np.int64], kind: np.dtype[Any]) -> pa.Array:
    """Return the ids of slices as a column of a block file."""
    ends = bounds_of(lengths) * kind.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(ids.astype(kind))]
    return pa.Array.from_buffers(pa.large_binary(), lengths.size, buffers)


def ids_of(column: pa.Array, kind: np.dtype[Any]) -> NDArray[np.uint32]:
    """Return the ids of a column of a block file, one slice after the other."""
    bounds, data = _bytes_of(column)
    return np.frombuffer(data[bounds[0] : bounds[-1]], kind).astype(np.uint32)


def _bytes_of(column: pa.Array) -> tuple[NDArray[np.int64], memoryview]:
    """Return the bounds of each slice of a column, int64[n + 1], in the bytes of its ids."""
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int64)[column.offset : column.offset + len(column) + 1]
    return bounds, memoryview(data or b"")


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return all rows of a table as one batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


class BlockFileWriter:
    """Writes a block file; a context manager.

    Slices of more than BUFFER_BYTES wait in a local temporary file, so that each new shard has one
    block however many slices there are.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema, shards: int) -> None:
        self.file = HashingFile(file)
        self._schema = schema
        self._shards = shards
        self._rows: list[pa.RecordBatch] = []
        self._shard_numbers: list[NDArray[np.int64]] = []
        self._bytes = 0
        # On disk as soon as it has anything; closed by `__exit__`.
        self._spool = tempfile.SpooledTemporaryFile(max_size=1)  # noqa: SIM115
        self._spooled: list[list[int]] = []  # where each block begins there, and the end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._spool.close()

    def add(self, rows: pa.RecordBatch, shards: NDArray[np.int64]) -> None:
        """Add slices; `shards` is int64[n], the number of the new shard that each is for."""
        self._rows.append(rows)
        self._shard_numbers.append(shards)
        self._bytes += rows.nbytes
        if self._bytes > BUFFER_BYTES:
            starts = [self._spool.tell()]
            for block in self._blocks():
                with _spooling():
                    self._spool.write(block)
                starts.append(self._spool.tell())
            self._spooled.append(starts)

    def finish(self) -> None:
        """Write all slices and the table."""
        starts = [0]
        for shard, block in enumerate(self._blocks()):
            for spooled in self._spooled:
                with _spooling():
                    self._spool.seek(spooled[shard])
                    earlier = self._spool.read(spooled[shard + 1] - spooled[shard])
                self.file.write(earlier)
            self.file.write(block)
            starts.append(self.file.bytes)
        self.file.write(np.array(starts, "<i8").tobytes())

    def _blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the waiting slices of each new shard as a serialized batch, or nothing as b""."""
        rows = one_batch(pa.Table.from_batches(self._rows, schema=self._schema))
        numbers = np.concatenate([np.empty(0, np.int64), *self._shard_numbers])
        self._rows, self._shard_numbers, self._bytes = [], [], 0
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(self._shards + 1))
        for shard in range(self._shards):
            chosen = order[bounds[shard] : bounds[shard + 1]]
            yield memoryview(rows.take(pa.array(chosen)).serialize()) if chosen.size else b""


def _spooling() -> AbstractContextManager[None]:
    return spool_errors("the slices of documents", "about the bytes of the shard's ids")


def block_of(
    storage: Storage, url: str, schema: pa.Schema, number: int, blocks: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one of the blocks of a block file."""
    with RangeFile(storage, url) as file:
        table_at = file.size - 8 * (blocks + 1)
        start, stop = np.frombuffer(file.read(table_at + 8 * number, 16), "<i8").tolist()
        block = pa.BufferReader(file.read(start, stop - start))
    while block.tell() < block.size():
        yield pa.ipc.read_record_batch(pa.ipc.read_message(block), schema)


def read_block(task: ArrangeTask, files: Sequence[str], shard: int) -> pa.Table:
    """Return the slices of a new shard from all block files, whose ids are one array.

    Ids are in memory once, and with them the block of one file.
    """
    schema = task.slices_schema
    ids, ends = bytearray(), [np.zeros(1, np.int64)]
    others = [schema.empty_table().drop_columns("ids")]
    for url in files:
        for batch in block_of(task.folder.storage, url, schema, shard, task.new_shards):
            bounds, data = _bytes_of(batch.column("ids"))
            ends.append(bounds[1:] - bounds[0] + len(ids))
            ids += data[bounds[0] : bounds[-1]]
            rows = pa.Table.from_batches([batch]).drop_columns("ids")
            others.append(rows.take(pa.array(np.arange(len(rows)))))  # a copy, without the block
    buffers = [None, pa.py_buffer(np.concatenate(ends)), pa.py_buffer(ids)]
    column = pa.Array.from_buffers(pa.large_binary(), sum(map(len, others)), buffers)
    at = schema.get_field_index("ids")
    return pa.concat_tables(others).add_column(at, schema.field(at), column)

"""Files with the slices of a shard's documents, in a block for each new shard.

A slice is a document, or the range of it that one sequence has. A row has the position of the new
document or sequence that the slice is for, the offset of the slice there, its ids as bytes, and the
labels of the document if the new shards store them. A block is Arrow record batches. After the
blocks comes a table, int64[shards + 1]: the first byte of the block of each new shard, and the end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.shards.formats.id_stream import spool_errors
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.workers.arrange.task import ArrangeTask, BlockFile

BUFFER_BYTES = 32 << 20
"""The bytes of slices that a worker has in memory before it writes them."""

_COPIED_BYTES = 4 << 20


def id_column(ids: NDArray[np.uint32], lengths: NDArray[np.int64], kind: np.dtype[Any]) -> pa.Array:
    """Return the ids of slices as a column of a block file."""
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))) * kind.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(ids.astype(kind))]
    return pa.Array.from_buffers(pa.large_binary(), lengths.size, buffers)


def ids_of(column: pa.Array, kind: np.dtype[Any]) -> NDArray[np.uint32]:
    """Return the ids of such a column, one slice after the other."""
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int64)[column.offset : column.offset + len(column) + 1]
    stored = memoryview(data)[bounds[0] : bounds[-1]] if data is not None else b""
    return np.frombuffer(stored, kind).astype(np.uint32)


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
        self._opened = ExitStack()
        self._spool: BinaryIO | None = None
        self._tables: list[NDArray[np.int64]] = []

    def __enter__(self) -> BlockFileWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def add(self, rows: pa.RecordBatch, shards: NDArray[np.int64]) -> None:
        """Add slices; `shards` is int64[n], the number of the new shard that each is for."""
        if not rows.num_rows:
            return
        self._rows.append(rows)
        self._shard_numbers.append(shards)
        self._bytes += rows.nbytes
        if self._bytes > BUFFER_BYTES:
            with self._spooling():
                self._spool = self._spool or self._new_spool()
                self._tables.append(self._write_rows(self._spool))

    def finish(self) -> int:
        """Write all slices and the table; return the position of the table."""
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
        """Write the waiting slices by new shards; return where each block begins, and the end."""
        at = self._tables[-1][-1] if self._tables else 0
        starts = np.full(self._shards + 1, at, np.int64)
        if not self._rows:
            return starts
        rows = one_batch(pa.Table.from_batches(self._rows, schema=self._schema))
        numbers = np.concatenate(self._shard_numbers)
        self._rows, self._shard_numbers, self._bytes = [], [], 0
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(self._shards + 1))
        for shard in range(self._shards):
            chosen = order[bounds[shard] : bounds[shard + 1]]
            if chosen.size:
                block = rows.take(pa.array(chosen)).serialize()
                file.write(block)
                at += block.size
            starts[shard + 1] = at
        return starts

    def _merge(self, spool: BinaryIO) -> NDArray[np.int64]:
        """Copy the blocks of all new shards to the file; return where each begins, and the end."""
        starts = np.zeros(self._shards + 1, np.int64)
        for shard in range(self._shards):
            for table in self._tables:
                start, stop = table[shard : shard + 2].tolist()
                if start < stop:
                    with self._spooling():
                        spool.seek(start)
                        block = spool.read(stop - start)
                    self.file.write(block)
            starts[shard + 1] = self.file.bytes
        return starts

    def _new_spool(self) -> BinaryIO:
        return self._opened.enter_context(cast(BinaryIO, tempfile.TemporaryFile()))

    def _spooling(self) -> AbstractContextManager[None]:
        return spool_errors("the slices of documents", "about the bytes of the shard's ids")


def read_block(task: ArrangeTask, files: Sequence[BlockFile], shard: int) -> pa.Table:
    """Return the slices of a new shard from all block files, whose ids are one array.

    Batches are copied when they have about _COPIED_BYTES, so that ids are in memory once.
    """
    schema = task.slices_schema
    ids = _GrowingIds(task.arrangement.shard_tokens * task.id_type.itemsize * 5 // 4)
    others = [schema.empty_table().drop_columns("ids")]
    for batches in _gathered(_read_batches(task, files, shard)):
        for each in batches:
            ids.add(each.column("ids"))
        rows = pa.Table.from_batches(batches).drop_columns("ids")
        others.append(rows.take(pa.array(np.arange(len(rows)))))
    at = schema.get_field_index("ids")
    return pa.concat_tables(others).add_column(at, schema.field(at), ids.column())


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield the batches in lists of about _COPIED_BYTES; the last list has the remaining ones."""
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
        """Append a column of a block file."""
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
        """Return all ids as one column."""
        ends = np.concatenate(self._ends)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(self._bytes[: self._size])]
        return pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, buffers)


def _read_batches(
    task: ArrangeTask, files: Sequence[BlockFile], shard: int
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a new shard's blocks."""
    for each in files:
        with RangeFile(task.folder.storage, each.url) as file:
            entry = file.read(each.table_at + 8 * shard, 16)
            start, stop = np.frombuffer(entry, "<i8").tolist()
            blocks = pa.BufferReader(file.read(start, stop - start))
            while blocks.tell() < blocks.size():
                yield pa.ipc.read_record_batch(pa.ipc.read_message(blocks), task.slices_schema)

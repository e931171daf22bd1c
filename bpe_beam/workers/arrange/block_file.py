"""Files with the slices of a shard's documents, in a block for each new shard.

A slice is a document, or the range of it that one sequence has. A row has the position of the new
document or sequence that the slice is for, the offset of the slice there, its ids as bytes, and the
labels of the document if the new shards store them. A block is Arrow record batches. After the
blocks comes a table, int64[shards + 1]: the first byte of the block of each new shard, and the end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.shards.formats.spool import spool_errors
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.workers.arrange.task import ArrangeTask, BlockFile

BUFFER_BYTES = 32 << 20
"""The bytes of slices that a worker has in memory before it writes them."""


def id_column(ids: NDArray[np.uint32], lengths: NDArray[np.int64], kind: np.dtype[Any]) -> pa.Array:
    """Return the ids of slices as a column of a block file."""
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))) * kind.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(ids.astype(kind))]
    return pa.Array.from_buffers(pa.large_binary(), lengths.size, buffers)


def ids_of(column: pa.Array, kind: np.dtype[Any]) -> NDArray[np.uint32]:
    """Return the ids of such a column, one slice after the other."""
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

    def __enter__(self) -> BlockFileWriter:
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

    def finish(self) -> int:
        """Write all slices and the table; return the position of the table."""
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
        return starts[-1]

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


def read_block(task: ArrangeTask, files: Sequence[BlockFile], shard: int) -> pa.Table:
    """Return the slices of a new shard from all block files, whose ids are one array.

    Ids are in memory once, and with them the block of one file.
    """
    schema = task.slices_schema
    ids, ends = bytearray(), [np.zeros(1, np.int64)]
    others = [schema.empty_table().drop_columns("ids")]
    for batch in _read_batches(task, files, shard):
        bounds, data = _bytes_of(batch.column("ids"))
        ends.append(bounds[1:] - bounds[0] + len(ids))
        ids += data[bounds[0] : bounds[-1]]
        rows = pa.Table.from_batches([batch]).drop_columns("ids")
        others.append(rows.take(pa.array(np.arange(len(rows)))))  # a copy, without the block
    buffers = [None, pa.py_buffer(np.concatenate(ends)), pa.py_buffer(ids)]
    column = pa.Array.from_buffers(pa.large_binary(), sum(map(len, others)), buffers)
    at = schema.get_field_index("ids")
    return pa.concat_tables(others).add_column(at, schema.field(at), column)


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

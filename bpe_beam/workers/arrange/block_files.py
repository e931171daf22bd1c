"""Block files: slices of documents in blocks, each for a new shard or for a group of new shards.

A row of a block has the position of the new document or sequence that the slice is for, the offset
of the slice there, its ids as bytes, and the labels of the document if the new shards store them. A
block is Arrow record batches. After the blocks comes a table, int64[blocks + 1, 2]: the first byte
of each block and its CRC-32, then the end and 0.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import tempfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import DataError, lacks_memory
from bpe_beam.shards.document_batches import bounds_of
from bpe_beam.shards.formats.spool import spool_errors
from bpe_beam.shards.stored_shard import RangeFile
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.storage.names import is_local
from bpe_beam.storage.read_ahead import read_ahead
from bpe_beam.workers.arrange.task import LOST, ArrangeTask

if TYPE_CHECKING:
    from typing_extensions import Self

BUFFER_BYTES = 32 << 20  # the bytes of slices that a worker has in memory before it writes them

READ_AHEAD, READ_AHEAD_SHARE = 8, 8
"""The maximum number of blocks of remote files that are read at once, one for so many files."""

SMALL_BLOCK_BYTES = 4 << 20  # a block of no more bytes is in memory at once; larger ones by ranges

_TABLE_ROW = 16


def id_column(ids: NDArray[np.uint32], lengths: NDArray[np.int64], kind: np.dtype[Any]) -> pa.Array:
    """Return the ids of slices as a column of a block file."""
    ends = bounds_of(lengths) * kind.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(ids.astype(kind))]
    return pa.Array.from_buffers(pa.large_binary(), lengths.size, buffers)


def ids_of(column: pa.Array, kind: np.dtype[Any]) -> NDArray[np.uint32]:
    """Return the ids of a column of a block file, one slice after the other."""
    bounds, data = _bytes_of(column)
    return np.frombuffer(data[bounds[0] : bounds[-1]], kind).astype(np.uint32)


def token_count(column: pa.Array, kind: np.dtype[Any]) -> int:
    """Return the number of ids of a column of a block file."""
    bounds, _ = _bytes_of(column)
    return int(bounds[-1] - bounds[0]) // kind.itemsize


def _bytes_of(column: pa.Array) -> tuple[NDArray[np.int64], memoryview]:
    """Return the bounds of each slice of a column, int64[n + 1], in the bytes of its ids."""
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int64, len(column) + 1, 8 * column.offset)
    return bounds, memoryview(data or b"")


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return all rows of a table as one batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


class BlockFileWriter:
    """Writes a block file; a context manager.

    Slices of more than BUFFER_BYTES wait in a local temporary file, so that there is one block of
    each number however many slices there are.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema, blocks: int) -> None:
        self.file = HashingFile(file)
        self._schema = schema
        self._count = blocks
        self._rows: list[pa.RecordBatch] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._bytes = 0
        # On disk as soon as it has anything; closed by `__exit__`.
        self._spool = tempfile.SpooledTemporaryFile(max_size=1)  # noqa: SIM115
        self._spooled: list[list[int]] = []  # where each block begins there, and the end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._spool.close()

    def add(self, rows: pa.RecordBatch, blocks: NDArray[np.int64]) -> None:
        """Add slices; `blocks` is int64[n], the number of the block of each."""
        self._rows.append(rows)
        self._numbers.append(blocks)
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
        table: list[tuple[int, int]] = []
        for number, block in enumerate(self._blocks()):
            start, checksum = self.file.bytes, 0
            for spooled in self._spooled:
                with _spooling():
                    self._spool.seek(spooled[number])
                    earlier = self._spool.read(spooled[number + 1] - spooled[number])
                self.file.write(earlier)
                checksum = zlib.crc32(earlier, checksum)
            self.file.write(block)
            table.append((start, zlib.crc32(block, checksum)))
        table.append((self.file.bytes, 0))
        self.file.write(np.array(table, "<i8").tobytes())

    def _blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the waiting slices of each block as a serialized batch, or nothing as b""."""
        rows = one_batch(pa.Table.from_batches(self._rows, schema=self._schema))
        numbers = np.concatenate([np.empty(0, np.int64), *self._numbers])
        self._rows, self._numbers, self._bytes = [], [], 0
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(self._count + 1))
        if bounds[0] or bounds[-1] != numbers.size:
            raise DataError(LOST)
        for start, stop in itertools.pairwise(bounds.tolist()):
            chosen = order[start:stop]
            yield memoryview(rows.take(pa.array(chosen)).serialize()) if chosen.size else b""


def _spooling() -> AbstractContextManager[None]:
    return spool_errors("the slices of documents", "about the bytes of the shard's ids")


def one_of_each(urls: Sequence[str], count: int) -> list[str]:
    """Return block files in order, one of each of `count` tasks.

    A missing last slice is not noticed later.
    """
    names = {url.rpartition("/")[2]: url for url in urls}
    if not len(urls) == len(names) == count:
        raise DataError(LOST)
    return [url for _, url in sorted(names.items())]


def blocks_of(
    storage: Storage, urls: Sequence[str], schema: pa.Schema, number: int, blocks: int
) -> Generator[Iterator[pa.RecordBatch], None, None]:
    """Yield the rows of the block with a number, of each block file; close it if it is left early.

    Far from a store each request counts, so blocks of many files are read ahead: at most one
    for READ_AHEAD_SHARE files. A file with other bytes than were written is removed: the job, run
    again, then writes it again.
    """
    ahead = min(READ_AHEAD, len(urls) // READ_AHEAD_SHARE)
    if not urls or is_local(urls[0]):
        ahead = 0
    for block in read_ahead(lambda url: _Block(storage, url, number, blocks), urls, ahead):
        with contextlib.closing(block):
            yield block.batches(schema)


class _Block(io.RawIOBase):
    """The bytes of a block of a block file: in memory if they are few, else read by ranges."""

    def __init__(self, storage: Storage, url: str, number: int, blocks: int) -> None:
        super().__init__()
        self._storage, self._url = storage, url
        local = RangeFile(storage, url) if is_local(url) else None
        self._file = local or storage.remote.open_ranges(url)
        self._size_given = local is not None
        self._data, self._sum = memoryview(b""), 0
        try:
            table_at = self._file.size - _TABLE_ROW * (blocks + 1)
            if table_at < 0:
                raise self._damaged()
            row = table_at + _TABLE_ROW * number
            table = np.frombuffer(self._range(row, row + 2 * _TABLE_ROW), "<i8").tolist()
            self._at, self._checksum, self._stop, _ = table
            if not 0 <= self._at <= self._stop <= table_at:
                raise self._damaged()
            if self._stop - self._at <= SMALL_BLOCK_BYTES:
                self._read_range()
                self._file.close()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, or as many as there are."""
        parts, missing = [], size if size >= 0 else self._stop - self._at + len(self._data)
        while missing and (self._data or self._at < self._stop):
            if not self._data:
                self._read_range()
            parts.append(self._data[:missing])
            self._data = self._data[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        if self._at == self._stop:  # all of it is in memory
            size, stream = len(self._data), pa.BufferReader(self._data)
            while stream.tell() < size:
                yield self._batch(stream, schema)
        else:
            stream = pa.PythonFile(self, mode="r")
            while self._data or self._at < self._stop:
                yield self._batch(stream, schema)

    def _batch(self, stream: pa.NativeFile, schema: pa.Schema) -> pa.RecordBatch:
        try:
            batch = pa.ipc.read_record_batch(pa.ipc.read_message(stream), schema)
            batch.validate(full=True)
        except (pa.ArrowException, EOFError, OSError) as error:
            if lacks_memory(error):
                raise
            raise self._damaged() from error
        return batch

    def _range(self, start: int, stop: int) -> bytes:
        return self._file.read(start, stop - start if self._size_given else stop)

    def _read_range(self) -> None:
        """Read the next range; compare the checksum after the last."""
        stop = min(self._stop, self._at + SMALL_BLOCK_BYTES)
        data = self._range(self._at, stop)
        self._data, self._at = memoryview(data), stop
        self._sum = zlib.crc32(data, self._sum)
        if stop == self._stop and self._sum != self._checksum:
            raise self._damaged()

    def _damaged(self) -> DataError:
        self._storage.remove(self._url)
        return DataError(
            f"{redact(self._url)} had other bytes than were written, and was removed; run this job "
            "again"
        )


def read_block(task: ArrangeTask, files: Sequence[str], number: int, blocks: int) -> pa.Table:
    """Return the slices of one block of all files, whose ids are one array.

    Ids are in memory once, and with them a batch of one file, or the small blocks that are read
    ahead.
    """
    schema = task.slices_schema
    ids, ends = bytearray(), [np.zeros(1, np.int64)]
    others = [schema.empty_table().drop_columns("ids")]
    found = blocks_of(task.folder.storage, files, schema, number, blocks)
    with contextlib.closing(found):
        for batch in itertools.chain.from_iterable(found):
            bounds, data = _bytes_of(batch.column("ids"))
            ends.append(bounds[1:] - bounds[0] + len(ids))
            ids += data[bounds[0] : bounds[-1]]
            rows = pa.Table.from_batches([batch]).drop_columns("ids")
            others.append(rows.take(pa.array(np.arange(len(rows)))))  # a copy, without the block
    buffers = [None, pa.py_buffer(np.concatenate(ends)), pa.py_buffer(ids)]
    column = pa.Array.from_buffers(pa.large_binary(), sum(map(len, others)), buffers)
    at = schema.get_field_index("ids")
    return pa.concat_tables(others).add_column(at, schema.field(at), column)

"""Block files: slices of documents in blocks, each for a new shard or for a group of new shards.

A row of a block has the position of the new document or sequence that the slice is for, the offset
of the slice there, its ids as bytes, and the labels of the document if the new shards store them. A
block is Arrow record batches. After the blocks comes a table, int64[blocks + 1]: the first byte of
each block, and the end.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.document_batches import bounds_of
from bpe_beam.shards.formats.spool import spool_errors
from bpe_beam.shards.stored_shard import RangeFile
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.storage.names import is_local
from bpe_beam.storage.read_ahead import read_ahead
from bpe_beam.workers.arrange.task import LOST, ArrangeTask

if TYPE_CHECKING:
    from typing_extensions import Self

BUFFER_BYTES = 32 << 20  # the bytes of slices that a worker has in memory before it writes them

READ_AHEAD, READ_AHEAD_SHARE = 8, 8
"""The maximum number of blocks of remote files that are read at once, one for so many files."""

SMALL_BLOCK_BYTES = 4 << 20  # a block of no more bytes is in memory at once


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
    bounds = np.frombuffer(ends, np.int64)[column.offset : column.offset + len(column) + 1]
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
        starts = [0]
        for number, block in enumerate(self._blocks()):
            for spooled in self._spooled:
                with _spooling():
                    self._spool.seek(spooled[number])
                    earlier = self._spool.read(spooled[number + 1] - spooled[number])
                self.file.write(earlier)
            self.file.write(block)
            starts.append(self.file.bytes)
        self.file.write(np.array(starts, "<i8").tobytes())

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
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Yield the rows of the block with a number, of each block file.

    Far from a store each request counts, so small blocks of many files are read ahead: at most one
    for READ_AHEAD_SHARE files.
    """
    ahead = min(READ_AHEAD, len(urls) // READ_AHEAD_SHARE)
    if not urls or is_local(urls[0]):
        ahead = 0
    for block in read_ahead(lambda url: _block(storage, url, number, blocks), urls, ahead):
        if block.data is not None:
            yield _batches(pa.BufferReader(block.data), len(block.data), schema)
            continue
        with storage.open(block.url) as file:
            file.seek(block.start)
            yield _batches(pa.PythonFile(file, mode="r"), block.stop, schema)


class _Block(NamedTuple):
    """A block in a block file; `data` has its bytes if it is small."""

    url: str
    start: int
    stop: int
    data: bytes | None


def _block(storage: Storage, url: str, number: int, blocks: int) -> _Block:
    """Return a block of a block file."""
    local = RangeFile(storage, url) if is_local(url) else None
    with contextlib.closing(local or storage.remote.open_ranges(url)) as file:

        def read(start: int, stop: int) -> bytes:
            return file.read(start, stop if local is None else stop - start)

        table_at = file.size - 8 * (blocks + 1)
        if table_at < 0:
            raise DataError(LOST)
        at = table_at + 8 * number
        start, stop = np.frombuffer(read(at, at + 16), "<i8").tolist()
        if not 0 <= start <= stop <= table_at:
            raise DataError(LOST)
        small = stop - start <= SMALL_BLOCK_BYTES
        return _Block(url, start, stop, read(start, stop) if small else None)


def _batches(block: pa.NativeFile, stop: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file from its position to `stop`."""
    while block.tell() < stop:
        try:
            batch = pa.ipc.read_record_batch(pa.ipc.read_message(block), schema)
            batch.validate(full=True)
        except (pa.ArrowException, EOFError, OSError) as error:
            raise DataError(LOST) from error
        yield batch


def read_block(task: ArrangeTask, files: Sequence[str], number: int, blocks: int) -> pa.Table:
    """Return the slices of one block of all files, whose ids are one array.

    Ids are in memory once, and with them a batch of one file, or the small blocks that are read
    ahead.
    """
    schema = task.slices_schema
    ids, ends = bytearray(), [np.zeros(1, np.int64)]
    others = [schema.empty_table().drop_columns("ids")]
    for batches in blocks_of(task.folder.storage, files, schema, number, blocks):
        for batch in batches:
            bounds, data = _bytes_of(batch.column("ids"))
            ends.append(bounds[1:] - bounds[0] + len(ids))
            ids += data[bounds[0] : bounds[-1]]
            rows = pa.Table.from_batches([batch]).drop_columns("ids")
            others.append(rows.take(pa.array(np.arange(len(rows)))))  # a copy, without the block
    buffers = [None, pa.py_buffer(np.concatenate(ends)), pa.py_buffer(ids)]
    column = pa.Array.from_buffers(pa.large_binary(), sum(map(len, others)), buffers)
    at = schema.get_field_index("ids")
    return pa.concat_tables(others).add_column(at, schema.field(at), column)

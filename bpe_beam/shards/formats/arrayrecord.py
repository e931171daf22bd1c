"""ArrayRecord shards: an `.array_record` with one record a document, found by its number.

A record is the tf.train.Example that TFRecord shards have, too. The file is the one that package
array_record writes with the options `group_size:1,uncompressed`, byte by byte; the package is not
needed. In front of the last block is an index: where each record is, and its size.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.errors import DataError
from bpe_beam.shards.formats.example_writer import MAX_TOKENS, ExampleWriter
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.shards.formats.record_file import RecordAccess, RecordFile, RowSpool, record_format
from bpe_beam.shards.stored_shard import (
    Ids,
    IdType,
    ShardFile,
    StoredShard,
    check_counts,
)

if TYPE_CHECKING:
    from typing_extensions import Self

SUFFIX = ".array_record"

_BLOCK = 1 << 16
"""Files are whole blocks of this many bytes."""

_BLOCK_HEAD = 24
"""The bytes at the start of a block that belong to no chunk."""

_START = _native.array_record_start().tobytes()
_WINDOW = 4 << 20


def _row_spool(name: str) -> RowSpool:
    """Return where the rows of a shard wait.

    A row is a record's: the tokens before it, the position of its chunk, and its bytes. The last
    one is of the index.
    """
    return RowSpool(3, f"the positions of the documents of {name}")


class ArrayRecordWriter(ExampleWriter):
    """A `ShardWriter`."""

    def __enter__(self) -> Self:
        self._rows = self.files.enter_context(_row_spool(self.name))
        self._position = 0
        return super().__enter__()

    def write_records(self, ids: NDArray[np.uint32], offsets: NDArray[np.int64]) -> None:
        """See `ExampleWriter.write_records`."""
        if not self._position:
            self._write(_START)
        data, positions, sizes = _native.array_records(ids, offsets, self._position)
        self._rows.add(0, positions, sizes)
        self._write(data)

    def finish(self) -> None:
        """See `OneFileWriter.finish`."""
        self._rows.add(0, self._position, 0)
        for part in _tail(self._rows.rows()):
            self._write(part)

    def _write(self, data: bytes | NDArray[np.uint8]) -> None:
        self.file().write(data)
        self._position += len(data)


def _tail(rows: NDArray[np.int64]) -> Iterator[NDArray[np.uint8]]:
    """Yield what is behind the records of a file, in parts."""
    tail = _native.ArrayRecordTail(rows)
    while (part := tail.next()).size:
        yield part


class _Records(RecordFile):
    """The base of `RecordFile`s. Making it refuses a file with an unexpected start or tail."""

    def __init__(self, file: RangeFile | ShardFile) -> None:
        self.url = file.url
        self._file = file
        if file.size < 2 * _BLOCK or file.size % _BLOCK:
            raise DataError(
                f"{file.url}: has {file.size} bytes; expected a multiple of {_BLOCK}, at least "
                f"{2 * _BLOCK}"
            )
        if file.read(0, len(_START)) != _START:
            raise DataError(f"{file.url}: byte 0: it does not begin as an ArrayRecord file")
        last = file.size - _BLOCK
        index = _native.array_record_index(file.read(last, _BLOCK))
        if index is None or not len(_START) <= index < last:
            raise DataError(f"{file.url}: byte {last}: it does not say where the index is")
        with _row_spool(file.url) as spool:
            spool.add(self._find(index, spool), index, 0)
            self._rows = spool.rows()
        at = index
        for part in _tail(self._rows):
            if file.read(at, min(part.size, file.size - at)) != part.tobytes():
                raise DataError(f"{file.url}: byte {at}: the index is not the one of the records")
            at += part.size
        if at != file.size:
            raise DataError(f"{file.url}: byte {at}: expected its end; it has {file.size} bytes")

    @abstractmethod
    def _find(self, stop: int, spool: RowSpool) -> int:
        """Add the rows of the records, and return the number of their tokens."""

    def __len__(self) -> int:
        return len(self._rows) - 1

    def size(self, first: int, stop: int) -> int:
        """Return the bytes of records, and of what is around them."""
        return int(self._rows[stop, 1] - self._rows[first, 1])

    def ids(self, first: int, stop: int) -> NDArray[np.uint32]:
        """See `RecordFile.ids`."""
        return self.documents(first, stop)[0]

    def documents(self, first: int, stop: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the ids of documents, and int64[documents], the tokens of each."""
        rows = self._rows[first : stop + 1]
        start = int(rows[0, 1])
        found = _native.read_array_records(self._file.read(start, self.size(first, stop)), start)
        ids, lengths, positions, sizes, end, flaw = found
        if flaw or len(rows) != lengths.size + 1:
            self._refuse(end, first + lengths.size, flaw)
        if not (np.array_equal(positions, rows[:-1, 1]) and np.array_equal(sizes, rows[:-1, 2])):
            raise DataError(f"{self.url}: byte {start}: its records are not those of the index")
        return ids, lengths

    def _refuse(self, position: int, record: int, flaw: int) -> None:
        what = _native.CHUNK_FLAWS[flaw] or "it is not where the index says"
        raise DataError(f"{self.url}: byte {position}: record {record}: {what}")


class _ReadRecords(_Records):
    """The records of a file that is read as a whole when it is opened, once."""

    def __init__(self, file: RangeFile | ShardFile) -> None:
        super().__init__(file)
        self.bounds = self._rows[:, 0]

    def _find(self, stop: int, spool: RowSpool) -> int:
        at, size = len(_START), _WINDOW
        documents = tokens = 0
        while at < stop:
            count = min(size, stop - at)
            _, lengths, positions, sizes, end, flaw = _native.read_array_records(
                self._file.read(at, count), at
            )
            is_cut = flaw == _native.CHUNK_CUT and count < stop - at
            if flaw and not is_cut:
                self._refuse(end, documents + lengths.size, flaw)
            # A record may be greater than what was read.
            size = 2 * size if end == at else _WINDOW
            spool.add(tokens + np.cumsum(lengths) - lengths, positions, sizes)
            documents += lengths.size
            tokens += int(lengths.sum())
            at = end
        return tokens


class _IndexedRecords(_Records):
    """The records of a file of which only the index is read; `bounds` reads it as a whole."""

    def _find(self, stop: int, spool: RowSpool) -> int:
        reader = _native.ArrayRecordIndexReader(stop)
        at, last = stop, len(_START) - 1
        while not reader.done():
            data = self._file.read(at, min(_WINDOW, self._file.size - at))
            positions, sizes, is_index = reader.add(data)
            rising = np.diff(positions, prepend=last) > 0
            in_block = positions % _BLOCK
            possible = rising & (positions < stop) & ((in_block == 0) | (in_block > _BLOCK_HEAD))
            if not (data and is_index and possible.all()):
                raise DataError(f"{self.url}: byte {at}: this is no index")
            spool.add(0, positions, sizes)
            last = int(positions[-1]) if positions.size else last
            at += len(data)
        return 0

    @cached_property
    def bounds(self) -> NDArray[np.int64]:  # type: ignore[override]
        """See `RecordFile`."""
        return _ReadRecords(self._file).bounds


class ArrayRecordAccess(RecordAccess):
    """A `ShardAccess` that reads the index, and then the records that are asked for.

    What needs to know where documents begin in the ids reads the whole file, once.
    """

    _records: _IndexedRecords

    def __init__(self, shard: StoredShard) -> None:
        self._records = _IndexedRecords(shard.file(SUFFIX))
        check_counts(self._records.url, len(self._records), shard.entry.tokens, shard)

    def documents(self, start: int, stop: int, limit: int, dtype: IdType) -> Sequence[Ids]:
        """See `ShardAccess.documents`."""
        records = self._records
        # A token has at least one byte, and what is around a record has many.
        while stop > start + 1 and records.size(start, stop) > limit:
            stop = start + (stop - start) // 2
        ids, lengths = records.documents(start, stop)
        return [part.astype(dtype) for part in np.split(ids, np.cumsum(lengths)[:-1])]


FORMAT = record_format(
    "arrayrecord",
    SUFFIX,
    ArrayRecordWriter,
    _ReadRecords,
    MAX_TOKENS,
    access=ArrayRecordAccess,
)

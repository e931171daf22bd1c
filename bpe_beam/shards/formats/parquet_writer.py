"""Writing tables of documents as Parquet.

The ids are in dictionary encoding, by their first use in a group, each index in whole bytes: so
zstd finds ids that followed each other before, and files are smaller than with ids as they are.
pyarrow, which hashes each id and computes the levels of each, takes twice the time; so this module
makes the pages of ids. The other columns and the parts of the footer are pyarrow's.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.shards.formats.document_table import IDS
from bpe_beam.shards.formats.thrift_compact import (
    Kind,
    Struct,
    decode,
    encode,
    int32,
    int64,
    listed,
    struct,
    varint,
)

PAGE_VALUES = 1 << 19
"""The most values of a page: ids, and documents without any. 1 MB of indices of 16 bits."""

_ZSTD_LEVEL = -1
"""Of pages of ids: a fifth faster than level 1, and a tenth larger."""

_MAGIC = b"PAR1"

_GROUP = 8
"""The values of a group; their bits are whole bytes."""

# Numbers of the format's enumerations.
_INT32 = 1
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_ZSTD = 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2


class _File(IntEnum):
    """Fields of `FileMetaData`."""

    ROWS = 3
    GROUPS = 4


class _Group(IntEnum):
    """Fields of `RowGroup`."""

    CHUNKS = 1
    BYTES = 2
    START = 5
    STORED_BYTES = 6
    NUMBER = 7


class _Chunk(IntEnum):
    """Fields of `ColumnChunk`."""

    START = 2
    COLUMN = 3


class _Column(IntEnum):
    """Fields of `ColumnMetaData`."""

    TYPE = 1
    ENCODINGS = 2
    PATH = 3
    CODEC = 4
    VALUES = 5
    BYTES = 6
    STORED_BYTES = 7
    DATA_START = 9
    DICTIONARY_START = 11


class _Page(IntEnum):
    """Fields of `PageHeader`."""

    KIND = 1
    BYTES = 2
    STORED_BYTES = 3
    CHECKSUM = 4
    DATA = 5
    DICTIONARY = 7


class _Values(IntEnum):
    """Fields of `DataPageHeader` and, the first two, of `DictionaryPageHeader`."""

    COUNT = 1
    ENCODING = 2
    DEFINITION_LEVELS = 3
    REPETITION_LEVELS = 4


class ParquetWriter:
    """A `GroupWriter`: a group is a row group.

    Args:
        sink: The file, which is empty.
        schema: The columns: the first has the ids, the second the number of those of each row.
    """

    group_bytes: ClassVar[int] = 16 << 20

    def __init__(self, sink: pa.PythonFile, schema: pa.Schema) -> None:
        self._sink = sink
        self._at = 0
        self._rows = 0
        self._groups: list[Struct] = []
        # pyarrow's footer of no rows has the columns, their metadata and the program's name.
        self._footer, _ = _written(schema.empty_table())
        self._others = schema.remove(schema.get_field_index(IDS)).remove_metadata()
        self._ids = _IdPages()
        self._columns: list[list[pa.Array]] = []
        self._write(_MAGIC)

    def __enter__(self) -> ParquetWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is not None:
            return
        self._footer[_File.ROWS] = int64(self._rows)
        self._footer[_File.GROUPS] = listed(Kind.STRUCT, self._groups)
        footer = encode(self._footer)
        self._write(footer + len(footer).to_bytes(4, "little") + _MAGIC)

    def add(
        self, ids: NDArray[np.uint32], lengths: NDArray[np.int32], labels: list[pa.Array]
    ) -> None:
        """See `GroupWriter.add`."""
        self._ids.add(ids, lengths)
        self._columns.append([pa.array(lengths), *labels])

    def end_group(self) -> None:
        """See `GroupWriter.end_group`."""
        start = self._at
        ids = self._write_ids()
        columns = [pa.concat_arrays(parts) for parts in zip(*self._columns, strict=True)]
        self._columns = []
        footer, written = _written(pa.Table.from_arrays(columns, schema=self._others))
        (group,) = footer[_File.GROUPS].value.items
        others = group[_Group.CHUNKS].value.items
        _move(others, self._at - len(_MAGIC))
        self._write(written)
        chunk = {_Chunk.START: int64(0), _Chunk.COLUMN: struct(ids)}
        group[_Group.CHUNKS] = listed(Kind.STRUCT, [chunk, *others])
        group[_Group.BYTES] = int64(group[_Group.BYTES].value + ids[_Column.BYTES].value)
        group[_Group.START] = int64(start)
        group[_Group.STORED_BYTES] = int64(self._at - start)
        # It has 16 bits, and only encryption needs it.
        group.pop(_Group.NUMBER, None)
        self._groups.append(group)
        self._rows += len(columns[0])

    def _write_ids(self) -> Struct:
        """Write the pages of ids of a group; return their `ColumnMetaData`."""
        pages, self._ids = self._ids, _IdPages()
        start = self._at
        dictionary, *data = pages.finish()
        self._write(dictionary)
        data_start = self._at
        for page in data:
            self._write(page)
        return {
            _Column.TYPE: int32(_INT32),
            _Column.ENCODINGS: listed(Kind.INT32, [_PLAIN, _RLE, _RLE_DICTIONARY]),
            _Column.PATH: listed(Kind.BINARY, [IDS.encode(), b"list", b"element"]),
            _Column.CODEC: int32(_ZSTD),
            _Column.VALUES: int64(pages.values),
            _Column.BYTES: int64(pages.bytes),
            _Column.STORED_BYTES: int64(self._at - start),
            _Column.DATA_START: int64(data_start),
            _Column.DICTIONARY_START: int64(start),
        }

    def _write(self, data: bytes | memoryview) -> None:
        self._at += len(data)
        self._sink.write(data)


class _IdPages:
    """The pages of ids of a group.

    A page has whole rows, or a part of one that is longer; which ones, follows from their lengths
    alone. Each page is compressed when it is full, so that the group's ids need not wait in memory.

    Attributes:
        values: The number of ids and of rows without any.
        bytes: The bytes of the pages and their headers before compression.
    """

    def __init__(self) -> None:
        self.values = 0
        self.bytes = 0
        self._codec = pa.Codec("zstd", compression_level=_ZSTD_LEVEL)
        self._dictionary = _native.IdDictionary()
        self._pages: list[bytes] = []
        # Of the page that is not full: the ids of each row, its values, and whether it begins with
        # the rest of a row.
        self._lengths: list[NDArray[np.int32]] = []
        self._filled = 0
        self._continues = False

    def add(self, ids: NDArray[np.uint32], lengths: NDArray[np.int32]) -> None:
        """Add rows; see `GroupWriter.add`."""
        values = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.maximum(lengths, 1))))
        bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
        row = 0
        while row < lengths.size:
            room = PAGE_VALUES - self._filled
            stop = int(np.searchsorted(values, values[row] + room, side="right")) - 1
            if stop > row:
                self._fill(ids[bounds[row] : bounds[stop]], lengths[row:stop])
                row = stop
            elif self._filled:
                self._end_page()
            else:
                self._add_long(ids[bounds[row] : bounds[row + 1]])
                row += 1

    def finish(self) -> list[bytes]:
        """Return the page of the dictionary, and those of indices."""
        if self._filled:
            self._end_page()
        used = self._dictionary.ids()
        head: Struct = {_Values.COUNT: int32(used.size), _Values.ENCODING: int32(_PLAIN)}
        content = used.astype("<u4").tobytes()
        return [self._page(_DICTIONARY_PAGE, _Page.DICTIONARY, head, content), *self._pages]

    def _add_long(self, ids: NDArray[np.uint32]) -> None:
        """Add a row of more values than a page has."""
        for start in range(0, ids.size, PAGE_VALUES):
            part = ids[start : start + PAGE_VALUES]
            self._fill(part, np.array([part.size], np.int32))
            if start + PAGE_VALUES < ids.size:
                self._end_page()
                self._continues = True

    def _fill(self, ids: NDArray[np.uint32], lengths: NDArray[np.int32]) -> None:
        self._dictionary.add(ids)
        self._lengths.append(lengths)
        self._filled += int(np.maximum(lengths, 1).sum())

    def _end_page(self) -> None:
        lengths = np.concatenate(self._lengths)
        bits = 8 * self._dictionary.width()
        run = _run_header(-(-int(lengths.sum()) // _GROUP))
        page = self._dictionary.take(_levels(lengths, self._continues) + bytes([bits]) + run)
        head: Struct = {
            _Values.COUNT: int32(self._filled),
            _Values.ENCODING: int32(_RLE_DICTIONARY),
            _Values.DEFINITION_LEVELS: int32(_RLE),
            _Values.REPETITION_LEVELS: int32(_RLE),
        }
        self._pages.append(self._page(_DATA_PAGE, _Page.DATA, head, page.data))
        self.values += self._filled
        self._lengths, self._filled, self._continues = [], 0, False

    def _page(self, kind: int, field: _Page, head: Struct, content: bytes | memoryview) -> bytes:
        """Return a page behind its header."""
        stored = self._codec.compress(content, asbytes=True)
        checksum = zlib.crc32(stored)
        header = encode(
            {
                _Page.KIND: int32(kind),
                _Page.BYTES: int32(len(content)),
                _Page.STORED_BYTES: int32(len(stored)),
                _Page.CHECKSUM: int32(checksum - (checksum >> 31 << 32)),
                field: struct(head),
            }
        )
        self.bytes += len(header) + len(content)
        return header + bytes(stored)


def _levels(lengths: NDArray[np.int32], continues: bool) -> bytes:
    """Return the levels that a page begins with.

    Args:
        lengths: int32[n], the number of each row's ids.
        continues: Whether the first row began in the page before.
    """
    values = np.maximum(lengths, 1)
    ends = np.cumsum(values)
    count = int(ends[-1])
    repetition = np.ones(count, np.uint8)
    repetition[(ends - values)[int(continues) :]] = 0
    empty = (ends - values)[lengths == 0]
    if empty.size:
        # 3 is an id, 1 a row without any: both rows and ids might be null.
        definition = np.ones((count, 2), np.uint8)
        definition[empty, 1] = 0
        defined = b"".join(_bit_packed(np.packbits(definition, bitorder="little"), 2))
    else:
        defined = varint(count << 1) + b"\3"
    repeated = b"".join(_bit_packed(np.packbits(repetition, bitorder="little"), 1))
    return b"".join(len(each).to_bytes(4, "little") + each for each in (repeated, defined))


def _bit_packed(values: NDArray[np.uint8], bits: int) -> tuple[bytes, memoryview, bytes]:
    """Return the parts of a run of packed values of some bits each."""
    groups = -(-values.size // bits)
    return _run_header(groups), values.data, bytes(groups * bits - values.size)


def _run_header(groups: int) -> bytes:
    """Return what a run of packed values begins with, which are in groups of `_GROUP`."""
    return varint(groups << 1 | 1)


def _written(table: pa.Table) -> tuple[Struct, memoryview]:
    """Return the footer of the file that pyarrow makes of a table, and the columns in it."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        use_dictionary=["id", "source"],
        write_statistics=["source"],
        write_page_checksum=True,
    ) as writer:
        if table.num_rows:
            writer.write_table(table)
    file = memoryview(sink.getvalue())
    end = file.nbytes - len(_MAGIC) - 4
    size = int.from_bytes(file[end : end + 4], "little")
    return decode(bytes(file[end - size : end])), file[len(_MAGIC) : end - size]


def _move(chunks: list[Struct], by: int) -> None:
    """Change where the pages of column chunks are."""
    for chunk in chunks:
        column = chunk[_Chunk.COLUMN].value
        for start in (_Column.DATA_START, _Column.DICTIONARY_START):
            if start in column:
                column[start] = int64(column[start].value + by)

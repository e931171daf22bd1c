"""Parquet files whose bytes follow from their rows alone, not from the version of pyarrow.

pyarrow makes the pages of flat columns, with settings for which its versions 18 to 25 make equal
pages. Its footers differ: they name the version, and fields come and go. So the footer here has the
fields that readers need. Pages have less than two blocks of zstd, which are 128 KiB: zstd 1.5.7
ends the blocks of longer pages elsewhere than 1.5.6 does.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from bpe_beam.storage import thrift_compact as thrift
from bpe_beam.storage.hashing import HashingFile

CREATED_BY = b"bpe-beam version 1.0.0 (build 1)"
"""The program that a file names, and the version of the bytes that equal rows have."""

ZSTD_LEVEL = 1

_MAGIC = b"PAR1"
_PAGE_BYTES = 128 << 10

_SETTINGS: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": ZSTD_LEVEL,
    "write_statistics": False,
    "write_page_checksum": True,
    "data_page_size": _PAGE_BYTES,
    "dictionary_pagesize_limit": _PAGE_BYTES,
    # Whether a page is full, is known after each batch of values.
    "write_batch_size": 256,
}
if "max_rows_per_page" in inspect.signature(pq.ParquetWriter).parameters:
    # Versions without this setting have no limit.
    _SETTINGS["max_rows_per_page"] = 1 << 40


class Column(IntEnum):
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
    STATISTICS = 12


# Fields of `FileMetaData`, `RowGroup`, `ColumnChunk` and `Statistics`.
_FILE_ROWS, _FILE_GROUPS, _FILE_CREATED_BY = 3, 4, 6
_GROUP_CHUNKS, _GROUP_BYTES, _GROUP_ROWS, _GROUP_START, _GROUP_STORED_BYTES = 1, 2, 3, 5, 6
_CHUNK_START, _CHUNK_COLUMN = 2, 3
_NULLS, _MAXIMUM, _MINIMUM = 3, 5, 6


class ParquetFile:
    """A new Parquet file of `position` bytes so far; a context manager, which ends the file."""

    def __init__(
        self,
        sink: BinaryIO | HashingFile | pa.PythonFile,
        schema: pa.Schema,
        *,
        dictionary: Sequence[str] = (),
        encodings: Mapping[str, str] | None = None,
        statistics: Sequence[str] = (),
    ) -> None:
        self.position = 0
        self._sink = sink
        self._dictionary = dictionary
        self._encodings = encodings or {}
        self._statistics = statistics
        self._rows = 0
        self._groups: list[thrift.Struct] = []
        self._schema = schema
        self._footer: thrift.Struct | None = None
        self.write(_MAGIC)

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is not None:
            return
        fields = self._footer or self._made_by_pyarrow(self._schema.empty_table())[0]
        fields[_FILE_ROWS] = thrift.int64(self._rows)
        fields[_FILE_GROUPS] = thrift.listed(thrift.Kind.STRUCT, self._groups)
        fields[_FILE_CREATED_BY] = thrift.Value(thrift.Kind.BINARY, CREATED_BY)
        footer = thrift.encode(fields)
        self.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)

    def write(self, data: bytes | memoryview) -> None:
        self.position += len(data)
        self._sink.write(data)

    def add(self, table: pa.Table) -> None:
        self.end_group(self.write_flat(table), table.num_rows)

    def write_flat(self, table: pa.Table) -> list[thrift.Struct]:
        """Write the pages of flat columns; return the `ColumnMetaData` of each."""
        start = self.position - len(_MAGIC)
        footer, pages = self._made_by_pyarrow(table)
        if table.schema.equals(self._schema, check_metadata=True):
            self._footer = footer  # of the same schema
        self.write(pages)
        (group,) = footer[_FILE_GROUPS].value.items
        columns = []
        for name, chunk in zip(table.column_names, group[_GROUP_CHUNKS].value.items, strict=True):
            fields = chunk[_CHUNK_COLUMN].value
            column = {int(number): fields[number] for number in Column if number in fields}
            for position in (Column.DATA_START, Column.DICTIONARY_START):
                if position in column:
                    column[position] = thrift.int64(column[position].value + start)
            if name in self._statistics:
                column[Column.STATISTICS] = thrift.struct(_statistics(table[name]))
            columns.append(column)
        return columns

    def end_group(self, columns: Sequence[thrift.Struct], rows: int) -> None:
        """End a row group, whose pages are those written after the group before."""
        stored = sum(column[Column.STORED_BYTES].value for column in columns)
        chunks = [
            {_CHUNK_START: thrift.int64(0), _CHUNK_COLUMN: thrift.struct(column)}
            for column in columns
        ]
        self._groups.append(
            {
                _GROUP_CHUNKS: thrift.listed(thrift.Kind.STRUCT, chunks),
                _GROUP_BYTES: thrift.int64(sum(column[Column.BYTES].value for column in columns)),
                _GROUP_ROWS: thrift.int64(rows),
                _GROUP_START: thrift.int64(self.position - stored),
                _GROUP_STORED_BYTES: thrift.int64(stored),
            }
        )
        self._rows += rows

    def _made_by_pyarrow(self, table: pa.Table) -> tuple[thrift.Struct, memoryview]:
        """Return the footer of the file that pyarrow makes of a table, and the pages in it."""
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(
            sink,
            table.schema,
            use_dictionary=[*self._dictionary],
            column_encoding={**self._encodings} or None,
            **_SETTINGS,
        ) as writer:
            if table.num_rows:
                writer.write_table(table, row_group_size=table.num_rows)
        file = memoryview(sink.getvalue())
        end = file.nbytes - len(_MAGIC) - 4
        size = int.from_bytes(file[end : end + 4], "little")
        return thrift.decode(bytes(file[end - size : end])), file[len(_MAGIC) : end - size]


def _statistics(values: pa.ChunkedArray) -> thrift.Struct:
    statistics: thrift.Struct = {_NULLS: thrift.int64(values.null_count)}
    texts = [text.encode() for text in values.unique().to_pylist() if text is not None]
    if texts:
        statistics[_MAXIMUM] = thrift.Value(thrift.Kind.BINARY, max(texts))
        statistics[_MINIMUM] = thrift.Value(thrift.Kind.BINARY, min(texts))
    return statistics

"""Parquet shards: one table of documents, see `document_table.py`; a group of rows is a row group.

A page of ids has the first bytes of all of them, then the second bytes of all ..., compressed by
zstd: smaller than with a dictionary of ids, and written in half the time. Pages have checksums.
"""

from __future__ import annotations

from itertools import pairwise
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bpe_beam.shards.formats.document_table import IDS, native_file, table_format

_CHUNK_IDS = 1 << 17
"""The ids of a chunk of a group that is written, unless one document has more."""

_BATCH_VALUES = 1 << 14
"""The values between two checks whether a page is full; a page has 1 MB."""


class _GroupWriter(pq.ParquetWriter):  # type: ignore[misc]
    """Writes each table as a row group."""

    def write_table(self, table: pa.Table) -> None:
        """Write a table of one chunk.

        pyarrow computes four bytes beside each value of a chunk that is a list: of small chunks
        they remain in the processor's cache, and the allocator need not ask the system for them.
        """
        at = table.schema.get_field_index(IDS)
        lists = table.column(IDS).chunk(0)
        chunks = pa.chunked_array(_chunks(lists), lists.type)
        super().write_table(table.set_column(at, table.schema.field(at), chunks))


def _chunks(lists: pa.ListArray) -> list[pa.ListArray]:
    """Divide lists by their lengths alone: the bytes of a file depend on where chunks end."""
    ends = lists.offsets.to_numpy()
    rows = [0]
    while rows[-1] < len(lists):
        stop = int(np.searchsorted(ends, int(ends[rows[-1]]) + _CHUNK_IDS, side="right")) - 1
        rows.append(max(stop, rows[-1] + 1))
    return [lists.slice(start, stop - start) for start, stop in pairwise(rows)]


def _open_writer(sink: pa.PythonFile, schema: pa.Schema) -> pq.ParquetWriter:
    return _GroupWriter(
        sink,
        schema,
        compression="zstd",
        use_dictionary=["id", "source"],
        column_encoding={f"{IDS}.list.element": "BYTE_STREAM_SPLIT"},
        write_statistics=["source"],
        write_page_checksum=True,
        write_batch_size=_BATCH_VALUES,
    )


class _ParquetFile:
    """A `TableFile`."""

    def __init__(self, stored: BinaryIO | pa.NativeFile) -> None:
        self._file = pq.ParquetFile(
            native_file(stored), pre_buffer=False, page_checksum_verification=True
        )
        self.schema = self._file.schema_arrow
        self.groups = self._file.num_row_groups

    def read(self, group: int, column: str) -> pa.Array:
        """See `TableFile.read`."""
        expected = self._file.metadata.row_group(group).num_rows
        table = self._file.read_row_group(group, columns=[column], use_threads=False)
        if table.num_rows != expected:
            raise ValueError(f"has {table.num_rows} rows; expected {expected}")
        return table.column(column).combine_chunks()


FORMAT = table_format("parquet", ".parquet", _open_writer, _ParquetFile)

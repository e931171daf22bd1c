"""Parquet shards: one table of documents, see `document_table.py`; a group of rows is a row group.

Pages are compressed by zstd and have checksums; see `parquet_writer.py`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from bpe_beam.shards.formats.document_table import table_format
from bpe_beam.shards.formats.parquet_writer import ParquetWriter


class _ParquetFile:
    """A `TableFile`."""

    def __init__(self, stored: pa.NativeFile) -> None:
        self._file = pq.ParquetFile(stored, pre_buffer=False, page_checksum_verification=True)
        self.schema = self._file.schema_arrow
        self.groups = self._file.num_row_groups

    def read(self, group: int, column: str) -> pa.Array:
        expected = self._file.metadata.row_group(group).num_rows
        table = self._file.read_row_group(group, columns=[column], use_threads=False)
        if table.num_rows != expected:
            raise ValueError(f"has {table.num_rows} rows; expected {expected}")
        return table.column(column).combine_chunks()


FORMAT = table_format("parquet", ".parquet", ParquetWriter, _ParquetFile)

"""Arrow shards: one table of documents, see `document_table.py`, as an IPC file; a group of rows is
a record batch. Nothing is compressed, so that readers can map the file into memory.
"""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa

from bpe_beam.shards.formats.document_table import native_file, table_format


def _open_writer(sink: pa.PythonFile, schema: pa.Schema) -> pa.RecordBatchFileWriter:
    return pa.ipc.new_file(sink, schema)


class _ArrowFile:
    """A `TableFile`."""

    def __init__(self, stored: BinaryIO | pa.NativeFile) -> None:
        self._stored = native_file(stored)
        file = pa.ipc.open_file(self._stored)
        self.schema = file.schema
        self.groups = file.num_record_batches

    def read(self, group: int, column: str) -> pa.Array:
        """See `TableFile.read`."""
        options = pa.ipc.IpcReadOptions(
            use_threads=False, included_fields=[self.schema.get_field_index(column)]
        )
        file = pa.ipc.open_file(self._stored, options=options)
        return file.get_batch(group).column(column)


FORMAT = table_format("arrow", ".arrow", _open_writer, _ArrowFile, maps=True)

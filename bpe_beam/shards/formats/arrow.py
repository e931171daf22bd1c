"""Arrow shards: one table of documents, see `document_table.py`, as an IPC file; a group of rows is
a record batch. Nothing is compressed, so that readers can map the file into memory.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.shards.formats.document_table import GROUP_BYTES, native_file, table_format


class ArrowWriter:
    """A `GroupWriter`: a group is a record batch.

    Args:
        sink: The file, which is empty.
        schema: The columns.
    """

    def __init__(self, sink: pa.PythonFile, schema: pa.Schema) -> None:
        self._schema = schema
        self._file = pa.ipc.new_file(sink, schema)
        self._rows = _Rows()

    def __enter__(self) -> ArrowWriter:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._file.__exit__(*exception)

    def add(
        self, ids: NDArray[np.uint32], lengths: NDArray[np.int32], labels: list[pa.Array]
    ) -> None:
        """See `GroupWriter.add`."""
        self._rows.add(ids, lengths, labels)

    def end_group(self) -> None:
        """See `GroupWriter.end_group`."""
        rows, self._rows = self._rows, _Rows()
        self._file.write_batch(rows.batch(self._schema))


class _Rows:
    """The rows of a group that is not written yet."""

    def __init__(self) -> None:
        # Only the part that is filled takes memory.
        self._ids = np.empty(GROUP_BYTES // 4, np.int32)
        self._filled = 0
        self._lengths = bytearray()
        self._labels: list[list[pa.Array]] = []

    def add(
        self, ids: NDArray[np.uint32], lengths: NDArray[np.int32], labels: list[pa.Array]
    ) -> None:
        """Append rows; a row longer than GROUP_BYTES must be the only one of its group."""
        filled, self._filled = self._filled, self._filled + ids.size
        if self._filled > self._ids.size:
            self._ids = np.empty(ids.size, np.int32)
        self._ids[filled : self._filled] = ids
        self._lengths += lengths.data
        self._labels.append(labels)

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return the rows."""
        ids, lengths = self._ids[: self._filled], np.frombuffer(self._lengths, np.int32)
        offsets = np.concatenate((np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)))
        columns = [
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids)),
            pa.array(lengths),
            *map(pa.concat_arrays, zip(*self._labels, strict=True)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


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


FORMAT = table_format("arrow", ".arrow", ArrowWriter, _ArrowFile, maps=True)

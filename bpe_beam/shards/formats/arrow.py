"""Arrow shards: one table of documents, see `document_table.py`, as an IPC file; a group of rows is
a record batch. Nothing is compressed, so that readers can map the file into memory.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.shards.formats.document_table import table_format


class ArrowWriter:
    """A `GroupWriter`: a group is a record batch."""

    # Few enough that the ids are still in the processor's cache when they are hashed and written.
    group_bytes: ClassVar[int] = 2 << 20

    def __init__(self, sink: pa.PythonFile, schema: pa.Schema) -> None:
        self._schema = schema
        self._file = pa.ipc.new_file(sink, schema)
        # One array for the ids of all groups: new memory for each would cost as much as writing it.
        self._ids = np.empty(self.group_bytes // 4, np.int32)
        self._filled = 0
        self._long_row: NDArray[np.int32] | None = None
        self._lengths = bytearray()
        self._labels: list[list[pa.Array]] = []

    def __enter__(self) -> ArrowWriter:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._file.__exit__(*exception)

    def add(
        self, ids: NDArray[np.uint32], lengths: NDArray[np.int32], labels: list[pa.Array]
    ) -> None:
        """See `GroupWriter.add`. A row longer than a group is alone in its own."""
        filled, self._filled = self._filled, self._filled + ids.size
        if self._filled > self._ids.size:
            self._long_row = ids.astype(np.int32)
        else:
            self._ids[filled : self._filled] = ids
        self._lengths += lengths.data
        self._labels.append(labels)

    def end_group(self) -> None:
        """See `GroupWriter.end_group`."""
        ids = self._ids[: self._filled] if self._long_row is None else self._long_row
        lengths = np.frombuffer(self._lengths, np.int32)
        offsets = np.concatenate((np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)))
        columns = [
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids)),
            pa.array(lengths),
            *map(pa.concat_arrays, zip(*self._labels, strict=True)),
        ]
        self._file.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self._filled, self._long_row = 0, None
        self._lengths, self._labels = bytearray(), []


class _ArrowFile:
    """A `TableFile`."""

    def __init__(self, stored: pa.NativeFile) -> None:
        self._stored = stored
        file = pa.ipc.open_file(self._stored)
        self.schema = file.schema
        self.groups = file.num_record_batches
        # Opening a file reads its whole footer: once for each column that is read.
        self._columns: dict[str, pa.RecordBatchFileReader] = {}

    def read(self, group: int, column: str) -> pa.Array:
        if column not in self._columns:
            options = pa.ipc.IpcReadOptions(
                use_threads=False, included_fields=[self.schema.get_field_index(column)]
            )
            self._columns[column] = pa.ipc.open_file(self._stored, options=options)
        return self._columns[column].get_batch(group).column(column)


FORMAT = table_format("arrow", ".arrow", ArrowWriter, _ArrowFile, maps=True)

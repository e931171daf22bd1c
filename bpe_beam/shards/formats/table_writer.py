"""Writing tables of documents: rows in groups of limited size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.document_batches import DocumentBatch, bounds_of
from bpe_beam.shards.formats import TRAINER_COLUMNS, table_schema
from bpe_beam.shards.formats.batch_writer import BatchWriter
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.formats.trainer_columns import bytes_of_token, column_fields, trainer_columns
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile

ROW_BYTES = 24
"""The bytes that a row counts in a group, in addition to its ids, document id and source."""

_INT32 = np.dtype(np.int32)


class GroupWriter(Protocol):
    """Writes a file group by group; a context manager. The file needs at least one group."""

    # The maximum bytes of a group, unless it is one row: four a token, ROW_BYTES a row, and
    # the bytes of its id, its source and columns for trainers. Writers and readers have one
    # group in memory.
    group_bytes: ClassVar[int]

    def __enter__(self) -> GroupWriter: ...

    def __exit__(self, *exception: Any) -> None: ...

    def add(
        self, ids: NDArray[np.uint32], lengths: NDArray[np.int32], labels: list[pa.Array]
    ) -> None:
        """Add rows to the group.

        Args:
            lengths: int32[n], the number of each row's ids.
        """

    def end_group(self) -> None:
        """Write the group, which has rows, and begin the next one."""


OpenWriter = Callable[[pa.PythonFile, pa.Schema], GroupWriter]


class TableWriter(BatchWriter):
    """A `ShardWriter` that stores the labels of documents."""

    def __init__(
        self,
        storage: Storage,
        folder: str,
        name: str,
        vocab_size: int,
        origin: ShardOrigin | None = None,
        *,
        suffix: str,
        open_file: OpenWriter,
    ) -> None:
        self.suffixes = (suffix,)
        super().__init__(storage, folder, name, vocab_size)
        schema = table_schema.SCHEMA
        if origin is not None and origin.hashes:
            schema = table_schema.HASHED_SCHEMA
        elif origin is not None and origin.sequence_length is not None:
            schema = table_schema.SEQUENCES_SCHEMA
        columns = () if origin is None else origin.columns
        self._columns = tuple(name for name in TRAINER_COLUMNS if name in columns)
        self._labels = table_schema.label_fields(schema)
        fields = [*schema, *column_fields(self._columns)]
        self._schema = pa.schema(fields, table_schema.table_metadata(vocab_size, origin))
        self._open_file = open_file
        self._table: GroupWriter | None = None
        self._group_bytes = 0

    def add(self, batch: DocumentBatch) -> None:
        ids, offsets, labels = batch
        rows = offsets.size - 1
        columns = [_label(labels, field, rows) for field in self._labels]
        sizes = (4 + bytes_of_token(self._columns)) * np.diff(offsets) + ROW_BYTES
        for column in columns:
            sizes += _label_bytes(column)
        if "seq_start_id" in self._columns:
            sizes += _label_bytes(columns[0])
        ends = bounds_of(sizes)
        start = 0
        while start < rows:
            table = self._opened()
            room = table.group_bytes - self._group_bytes
            stop = int(np.searchsorted(ends, ends[start] + room, side="right")) - 1
            if stop <= start and self._group_bytes:
                self._end_group()
                continue
            stop = max(stop, start + 1)
            self._group_bytes += int(ends[stop] - ends[start])
            group_ids = ids[offsets[start] : offsets[stop]]
            lengths = np.diff(offsets[start : stop + 1]).astype(_INT32)
            group_labels = [column.slice(start, stop - start) for column in columns]
            group_labels += self._derived(group_ids, lengths, group_labels)
            table.add(group_ids, lengths, group_labels)
            start = stop

    def _derived(
        self, ids: NDArray[np.uint32], lengths: NDArray[np.int32], labels: list[pa.Array]
    ) -> list[pa.Array]:
        """Return the columns for trainers."""
        if not self._columns:
            return []
        documents = labels[0] if self._labels[0].name == table_schema.SEQUENCE_LENGTHS else None
        try:
            return trainer_columns(self._columns, ids, lengths, documents)
        except ValueError as error:
            raise DataError(
                f"cannot be made for {self.name}: {error}",
                ("columns",),
                "tokenize with {format} parquet or arrow, which store where documents begin",
            ) from error

    def finish(self, *others: HashingFile) -> None:
        self._end_group()

    def _end_group(self) -> None:
        self._opened().end_group()
        self._group_bytes = 0

    def _opened(self) -> GroupWriter:
        if self._table is None:
            sink = pa.PythonFile(self.file(), mode="w")
            self._table = self.files.enter_context(self._open_file(sink, self._schema))
        return self._table


def _label(labels: pa.RecordBatch | None, field: pa.Field, rows: int) -> pa.Array:
    """Return a column of labels; nulls if they are unknown."""
    names = [] if labels is None else labels.schema.names
    if labels is not None and labels.num_rows != rows:
        raise ValueError(f"labels must have {rows} rows, got {labels.num_rows}")
    if labels is not None and field.name in names:
        return _of_type(labels.column(field.name), field.type)
    if labels is not None and field.name == table_schema.TEXT_BYTES and "text" in names:
        return pa.array(_value_sizes(labels.column("text")))
    return pa.nulls(rows, field.type)


def _label_bytes(column: pa.Array) -> NDArray[np.int64]:
    """Return the bytes of each label; 0 of numbers, which ROW_BYTES counts."""
    if pa.types.is_integer(column.type):
        return np.zeros(len(column), np.int64)
    return _value_sizes(column) * (4 if pa.types.is_list(column.type) else 1)


# These functions are without pyarrow.compute, whose import takes as long as a small job.


def _value_sizes(column: pa.Array) -> NDArray[np.int64]:
    """Return the size of each string, in bytes, or list, in values; 0 of nulls."""
    if column.null_count == len(column):
        return np.zeros(len(column), np.int64)
    sizes = np.diff(_ends(column)).astype(np.int64)
    if column.null_count:
        sizes[[not value.is_valid for value in column]] = 0
    return sizes


def _of_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column as another type: string, or one that it casts to."""
    if column.type == kind:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    if not pa.types.is_large_string(column.type) or not pa.types.is_string(kind):
        return column.cast(kind)
    ends = _ends(column)
    if column.null_count or ends[-1] - ends[0] > np.iinfo(np.int32).max:
        return column.cast(kind)
    data = column.buffers()[2] or pa.py_buffer(b"")
    data = data.slice(int(ends[0]), int(ends[-1] - ends[0]))
    offsets = pa.py_buffer((ends - ends[0]).astype(np.int32))
    return pa.Array.from_buffers(kind, len(column), [None, offsets, data])


def _ends(column: pa.Array) -> NDArray[Any]:
    """Return where the values of a column begin, and the end of the last. It must have values."""
    large = pa.types.is_large_string(column.type) or pa.types.is_large_list(column.type)
    ends = np.frombuffer(column.buffers()[1], np.int64 if large else np.int32)
    return ends[column.offset : column.offset + len(column) + 1]

"""Rows of Arrow columns to batches of documents, wherever the columns come from.

A text may be of type string, large_string, string_view, of the binary types if it is UTF-8, of a
dictionary of these, or of none where all are null; so may ids and sources, which may be integers
too. An id of another type is none, such a source is OTHER_SOURCE, as in JSON Lines; a text of
another type, or no such column, ends the job: the file would otherwise be one reject, and a corpus
lost. Paths lead into structs. Of equal names the last counts.

Nothing that is broken is read: offsets and indices are checked before. Texts in a dictionary are
resolved a piece at a time, so that a short column cannot become an endless batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe_beam.corpus.batches import BATCH_SCHEMA, MAX_RECORD_BYTES, PLACE_BITS
from bpe_beam.corpus.read_settings import OTHER_SOURCE
from bpe_beam.corpus.rejects import RejectReason
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.errors import DataError

BROKEN = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, OverflowError)
"""What pyarrow raises of a file that is broken."""

_BINARY_VIEWS = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.large_binary(),
    pa.binary_view(): pa.binary_view(),
    pa.null(): pa.null(),
}


def check_names(schema: pa.Schema) -> None:
    """Raises ValueError if a column's name is not UTF-8: the file is broken."""
    for each in schema:
        each.name.encode()
        if pa.types.is_struct(each.type):
            check_names(pa.schema(list(each.type)))


def field_type(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """The type of the column that a path leads to; None if there is none."""
    fields: Any = schema
    found = None
    for name in path:
        if found is not None:
            if not pa.types.is_struct(found):
                return None
            fields = found
        indices = fields.get_all_field_indices(name)
        if not indices:
            return None
        found = fields.field(indices[-1]).type
    return found


def useful_paths(request: SliceRequest, schema: pa.Schema) -> list[tuple[str, ...]]:
    """The paths of the columns to be read of a file: text, and id and source where they are of use.

    Raises:
        DataError: There is no column of texts.
    """
    text, *names = request.settings.paths
    found = field_type(schema, text)
    if found is None or not _is_bytes(found):
        option = f"--text-field {request.settings.text_field!r}"
        columns = ", ".join(f"{each.name} ({each.type})" for each in schema)[:1000]
        why = "names no column" if found is None else f"names a column of {found}, not of strings,"
        raise DataError(
            f"{option} {why} in {request.file.name}; it has {columns or 'none at all'}. A dot "
            r"leads into a struct; one that is part of a name is written \."
        )
    paths = [text]
    for path in names:
        kind = field_type(schema, path) if path else None
        if kind is not None and (_is_bytes(kind) or pa.types.is_integer(kind)):
            paths.append(path)
    return paths


def _is_bytes(kind: pa.DataType) -> bool:
    return (kind.value_type if pa.types.is_dictionary(kind) else kind) in _BINARY_VIEWS


@dataclass
class RowReader:
    """Makes batches of documents of a file's rows.

    Attributes:
        request: The slice.
    """

    request: SliceRequest

    def check(self, rows: pa.RecordBatch) -> CheckedRows:
        """The columns that matter of some rows, safe to be read.

        Raises:
            BROKEN: The rows are broken.
        """
        rows.validate()
        texts, ids, sources = (_column(rows, path) for path in self.request.settings.paths)
        if texts is None:
            raise ValueError("a batch is without the column of the text")
        return CheckedRows(texts, ids, sources)

    def documents(
        self, rows: CheckedRows, place: int, row: int, where: str = ""
    ) -> Iterator[pa.RecordBatch]:
        """Yields the documents of rows, and rejects the others.

        Args:
            rows: The rows.
            place: The place of the first, in the file.
            row: The number of the first, for rejects.
            where: What the number counts from, if not from the file's start; for rejects.
        """
        request = self.request
        lengths = rows.lengths()
        for start, stop in _pieces(lengths, request.batch_bytes, request.max_rows):
            piece = _Piece(request, rows.resolved(start, stop), where)
            good = piece.judge(row + start)
            places = np.arange(place + start, place + stop, dtype=np.uint64)
            places |= np.uint64(request.number << PLACE_BITS)
            columns = [piece.ids(), piece.sources(), pa.array(places), piece.texts()]
            if not good.all():
                mask = pa.array(good)
                columns = [column.filter(mask) for column in columns]
            if good.any():
                yield pa.RecordBatch.from_arrays(columns, schema=BATCH_SCHEMA)


@dataclass
class CheckedRows:
    """Columns of bytes, dictionaries of bytes or integers, whose memory is sound."""

    text: pa.Array
    id: pa.Array | None
    source: pa.Array | None

    def lengths(self) -> np.ndarray[Any, Any]:
        """The bytes of each row."""
        total = np.zeros(len(self.text), np.int64)
        for column in (self.text, self.id, self.source):
            if column is not None and not pa.types.is_integer(column.type):
                total += _lengths(column)
        return total

    def resolved(self, start: int, stop: int) -> CheckedRows:
        """These of the rows, without dictionaries."""
        columns = (self.text, self.id, self.source)
        return CheckedRows(
            *(
                None if each is None else _resolve(each.slice(start, stop - start))
                for each in columns
            )
        )


@dataclass
class _Piece:
    """Rows that become one batch."""

    request: SliceRequest
    rows: CheckedRows
    where: str
    flaws: dict[int, tuple[RejectReason, str, bytes]] = field(default_factory=dict)

    def judge(self, first_row: int) -> np.ndarray[Any, Any]:
        """Which rows are good; the others are rejected."""
        rows, settings = self.rows, self.request.settings
        for column, name in (
            (rows.source, settings.source_field),
            (rows.id, settings.id_field),
            (rows.text, settings.text_field),
        ):
            if column is not None and pa.types.is_large_binary(column.type):
                self._find_bad_utf8(column, str(name))
        if rows.text.null_count:
            for row in np.flatnonzero(rows.text.is_null().to_numpy(zero_copy_only=False)).tolist():
                self.flaws[row] = (
                    RejectReason.FIELD_MISSING,
                    f"{settings.text_field!r} is null",
                    b"",
                )
        too_long = np.flatnonzero(_lengths(rows.text) > MAX_RECORD_BYTES)
        for row in too_long.tolist():
            self.flaws[row] = (RejectReason.TOO_LONG, f"more than {MAX_RECORD_BYTES} bytes", b"")
        good = np.ones(len(rows.text), bool)
        for row, (reason, detail, data) in sorted(self.flaws.items()):
            good[row] = False
            self.request.reject(reason, detail + self.where, data, row=first_row + row)
        return good

    def _find_bad_utf8(self, column: pa.Array, name: str) -> None:
        try:
            column.view(pa.large_string()).validate(full=True)
        except pa.ArrowInvalid:
            for row, value in enumerate(column):
                data = value.as_py() or b""
                try:
                    data.decode()
                except UnicodeDecodeError as error:
                    detail = f"at byte {error.start} of {name!r}"
                    self.flaws[row] = (RejectReason.INVALID_UTF8, detail, data)

    def texts(self) -> pa.Array:
        """The texts, those of bad rows too."""
        return self.rows.text.view(pa.large_string())

    def ids(self) -> pa.Array:
        """The ids."""
        return _names(self.rows.id, len(self.rows.text))

    def sources(self) -> pa.Array:
        """The sources."""
        other = pa.scalar(self.request.source, pa.large_string())
        if self.rows.source is None:
            return pa.repeat(other, len(self.rows.text))
        names = _names(self.rows.source, len(self.rows.text))
        return pc.if_else(pc.equal(names, "").fill_null(True), OTHER_SOURCE, names)


def _names(column: pa.Array | None, count: int) -> pa.Array:
    if column is None:
        return pa.nulls(count, pa.large_string())
    if pa.types.is_integer(column.type):
        return column.cast(pa.large_string())
    return column.view(pa.large_string())


def _column(rows: pa.RecordBatch, path: Sequence[str]) -> pa.Array | None:
    """The column that a path leads to, its memory checked; None if there is none of use."""
    if not path or field_type(rows.schema, path) is None:
        return None
    column = rows.column(rows.schema.get_all_field_indices(path[0])[-1])
    for name in path[1:]:
        # a null struct has null fields
        column = pc.struct_field(column, [column.type.get_all_field_indices(name)[-1]])
    if pa.types.is_integer(column.type):
        return column
    return _checked(column) if _is_bytes(column.type) else None


def _checked(column: pa.Array) -> pa.Array:
    """As large_binary, or a dictionary of that."""
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _checked(column.dictionary))
    seen = column.view(_BINARY_VIEWS[column.type])
    seen.validate(full=True)
    return seen.cast(pa.large_binary())


def _lengths(column: pa.Array) -> np.ndarray[Any, Any]:
    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary).take(column.indices)
    else:
        lengths = pc.binary_length(column)
    found: np.ndarray[Any, Any] = lengths.fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _resolve(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return column.dictionary.take(column.indices)
    return column


def _pieces(
    lengths: np.ndarray[Any, Any], most_bytes: int, most_rows: int
) -> Iterator[tuple[int, int]]:
    """Runs of rows of so many bytes at most, or of one row."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(ends):
        limit = (int(ends[start - 1]) if start else 0) + most_bytes
        stop = int(np.searchsorted(ends, limit, side="right"))
        stop = min(max(stop, start + 1), start + most_rows)
        yield start, min(stop, len(ends))
        start = stop

"""Rows of Arrow columns to batches of documents, wherever the columns come from.

A text may be of type string, large_string, string_view, of the binary types if it is UTF-8, of a
dictionary of these, or of type null, and of any extension type that is stored as one of them, such
as JSON. Ids and sources may also have a type whose values Arrow writes as text (numbers, booleans,
decimals, dates, times), or be UUIDs. A column of another type, or no column of the text, ends the
job: each row of the file would be a reject or without id. Paths lead into structs. If a name occurs
twice, the last column is used.

Offsets and indices are checked before they are used. Texts in a dictionary are
resolved one batch at a time, so that a short column cannot become an endless batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from bpe_beam.corpus.batches import BATCH_SCHEMA, MAX_RECORD_BYTES, PLACE_BITS
from bpe_beam.corpus.read_settings import OTHER_SOURCE, ReadSettings
from bpe_beam.corpus.rejects import RejectReason
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.corpus.streams import Stored
from bpe_beam.errors import DataError

BROKEN = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, OverflowError)
"""The errors of pyarrow for a broken file."""

_BINARY_VIEWS = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.large_binary(),
    pa.binary_view(): pa.binary_view(),
    pa.null(): pa.null(),
}
_UUID = "arrow.uuid"


def check_names(schema: pa.Schema) -> None:
    """Raise ValueError for a schema with a name that is not UTF-8: the file is broken."""
    for each in schema:
        each.name.encode()
        if pa.types.is_struct(each.type):
            check_names(pa.schema(list(each.type)))


def useful_paths(request: SliceRequest, schema: pa.Schema) -> list[tuple[str, ...]]:
    """Return the paths of the columns to be read: text, and id and source if they are usable."""
    text, *names = request.settings.paths
    kind = _field_type(schema, text)
    if kind is None or not _is_bytes(kind):
        columns = ", ".join(f"{each.name} ({each.type})" for each in schema)[:1000]
        why = "names no column" if kind is None else f"names a column of {kind}, not of strings,"
        raise DataError(
            f"{request.settings.text_field!r} {why} in {request.file.name}; it has "
            f"{columns or 'none at all'}. A dot leads into a struct; a dot in a name is "
            r"written \.",
            ("text_field",),
        )
    paths = [text]
    for name, path in zip(("id_field", "source_field"), names, strict=True):
        kind = _field_type(schema, path)
        if kind is None:
            continue
        if not _is_name(kind):
            if name == "id_field" and request.only_text:
                continue
            raise DataError(
                f"names a column of {kind} in {request.file.name}, which cannot be an id or a "
                f"source, got {getattr(request.settings, name)!r}",
                (name,),
                f"name a column of strings, numbers, dates or UUIDs with {{{name}}}",
            )
        paths.append(path)
    return paths


def _field_type(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """Return the type of the column that a path leads to; None if there is none."""
    fields: Any = schema
    kind = None
    for name in path:
        if kind is not None:
            fields = _storage_type(kind)
            if not pa.types.is_struct(fields):
                return None
        indices = fields.get_all_field_indices(name)
        if not indices:
            return None
        kind = fields.field(indices[-1]).type
    return kind


def is_extension(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Return whether the column that a path leads to has an extension type."""
    return isinstance(_field_type(schema, path), pa.BaseExtensionType)


def _storage_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values of a type are stored; extension types have another one."""
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return kind


def _is_bytes(kind: pa.DataType) -> bool:
    kind = _storage_type(kind)
    values = _storage_type(kind.value_type) if pa.types.is_dictionary(kind) else kind
    return values in _BINARY_VIEWS


def _is_name(kind: pa.DataType) -> bool:
    """Return whether the values of a type can be ids and sources."""
    if _is_bytes(kind) or _is_uuid(kind):
        return True
    try:
        _as_text(pa.nulls(0, _storage_type(kind)))
    except pa.ArrowException:
        return False
    return True


def names_in(column: pa.Array) -> pa.Array | None:
    """Return the ids or sources in a column as text, large_string."""
    if not _is_name(column.type):
        return None
    names = _resolve(_checked(column) if _is_bytes(column.type) else _as_text(column))
    names = names.view(pa.large_string())
    names.validate(full=True)
    return names


def _is_uuid(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == _UUID


def lose_file(request: SliceRequest, file: Stored, reason: RejectReason, error: Exception) -> None:
    """Report a file whose footer cannot be read, once, as a loss of all of it."""
    file.check(error)
    if isinstance(error, pa.ArrowNotImplementedError):
        reason = RejectReason.NOT_IMPLEMENTED
    if request.start == 0:
        size = request.file.size
        detail = str(error) if size else "the file is empty"
        request.reject(reason, detail, total=size, lost_bytes=size)


def checked_rows(request: SliceRequest, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of text, id and source, whose memory is safe to read.

    They have bytes or dictionaries of bytes; a column that the file lacks is null.
    """
    rows.validate()
    columns = [_column(rows, path) for path in request.settings.paths]
    if columns[0] is None:
        raise ValueError("a batch is without the column of the text")
    missing = pa.nulls(len(rows), pa.large_binary())
    columns = [missing if column is None else column for column in columns]
    return pa.RecordBatch.from_arrays(columns, ["text", "id", "source"])


def documents_of(
    request: SliceRequest, rows: pa.RecordBatch, place: int, row: int, where: str = ""
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of rows, and reject the others."""
    lengths = np.add.reduce([_lengths(column) for column in rows.columns])
    for start, stop in _runs(lengths, request.batch_bytes, request.max_rows):
        texts, ids, sources = map(_resolve, rows.slice(start, stop - start).columns)
        places = np.arange(place + start, place + stop, dtype=np.uint64)
        places |= np.uint64(request.number << PLACE_BITS)
        columns = [
            ids.view(pa.large_string()),
            _sources(request, sources),
            pa.array(places),
            texts.view(pa.large_string()),
        ]
        flaws = _flaws(request.settings, texts, ids, sources)
        for number, (reason, detail, data) in sorted(flaws.items()):
            request.reject(reason, detail + where, data, row=row + start + number)
        if flaws:
            good = np.ones(len(texts), bool)
            good[list(flaws)] = False
            columns = [column.filter(pa.array(good)) for column in columns]
        if len(flaws) < len(texts):
            yield pa.RecordBatch.from_arrays(columns, schema=BATCH_SCHEMA)


_Flaw = tuple[RejectReason, str, bytes]
"""The reason, the details and the bytes of a bad row."""


def _flaws(
    settings: ReadSettings, texts: pa.Array, ids: pa.Array, sources: pa.Array
) -> dict[int, _Flaw]:
    """Return the flaw of each bad row, by its number."""
    flaws: dict[int, _Flaw] = {}
    for column, name in (
        (sources, settings.source_field),
        (ids, settings.id_field),
        (texts, settings.text_field),
    ):
        flaws.update(_bad_utf8(column, str(name)))
    if texts.null_count:
        detail = f"{settings.text_field!r} is null"
        for row in np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False)).tolist():
            flaws[row] = (RejectReason.FIELD_MISSING, detail, b"")
    for row in np.flatnonzero(_lengths(texts) > MAX_RECORD_BYTES).tolist():
        flaws[row] = (RejectReason.TOO_LONG, f"more than {MAX_RECORD_BYTES} bytes", b"")
    return flaws


def _sources(request: SliceRequest, column: pa.Array) -> pa.Array:
    if request.settings.source_field is None:
        return pa.repeat(pa.scalar(request.source, pa.large_string()), len(column))
    return known_sources(column.view(pa.large_string()))


def known_sources(names: pa.Array) -> pa.Array:
    """Return sources, OTHER_SOURCE in place of null and of an empty name."""
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(names, "").fill_null(True), OTHER_SOURCE, names)


def _bad_utf8(column: pa.Array, name: str) -> Iterator[tuple[int, _Flaw]]:
    """Yield the number and the flaw of each value of a column that is not UTF-8."""
    try:
        column.view(pa.large_string()).validate(full=True)
    except pa.ArrowInvalid:
        for row, value in enumerate(column):
            data = value.as_py() or b""
            try:
                data.decode()
            except UnicodeDecodeError as error:
                yield row, (RejectReason.INVALID_UTF8, f"at byte {error.start} of {name!r}", data)


def _column(rows: pa.RecordBatch, path: Sequence[str]) -> pa.Array | None:
    """Return the column of a path, its memory checked; None if there is none of a usable type."""
    kind = _field_type(rows.schema, path)
    if kind is None:
        return None
    column = rows.column(rows.schema.get_all_field_indices(path[0])[-1])
    for name in path[1:]:
        import pyarrow.compute as pc  # slow to import: not for files of text

        column = _storage(column)
        # a null struct has null fields
        column = pc.struct_field(column, [column.type.get_all_field_indices(name)[-1]])
    if _is_bytes(kind):
        return _checked(column)
    return _as_text(column) if _is_name(kind) else None


def _storage(column: pa.Array) -> pa.Array:
    """Return a column as it is stored, without the names of extension types."""
    while isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column


def _as_text(column: pa.Array) -> pa.Array:
    """Return the texts of values that are not stored as text, as large_binary."""
    if _is_uuid(column.type):
        values = _storage(column).to_pylist()
        texts = [None if value is None else str(UUID(bytes=value)) for value in values]
        return pa.array(texts, pa.large_string()).view(pa.large_binary())
    column = _storage(column)
    if pa.types.is_dictionary(column.type):
        return _as_text(column.dictionary.take(column.indices))
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        import pyarrow.compute as pc

        # of UTC, as the names of time zones may be unknown on this machine
        texts = column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
        column = pc.binary_join_element_wise(texts, "Z", "")
    return column.cast(pa.large_string()).view(pa.large_binary())


def _checked(column: pa.Array) -> pa.Array:
    """Return a column as large_binary, or as a dictionary of that, after checking its memory."""
    column = _storage(column)
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _checked(column.dictionary))
    checked = column.view(_BINARY_VIEWS[column.type])
    checked.validate(full=True)
    return checked.cast(pa.large_binary())


def _lengths(column: pa.Array) -> np.ndarray[Any, Any]:
    """Return the bytes of each value, `int64[n]`."""
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary).take(column.indices)
    else:
        lengths = pc.binary_length(column)
    values: np.ndarray[Any, Any] = lengths.fill_null(0).to_numpy(zero_copy_only=False)
    return values


def _resolve(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return column.dictionary.take(column.indices)
    return column


def _runs(
    lengths: np.ndarray[Any, Any], max_bytes: int, max_rows: int
) -> Iterator[tuple[int, int]]:
    """Yield start and stop of runs of rows: each of limited bytes and rows, or of one row."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(ends):
        limit = (int(ends[start - 1]) if start else 0) + max_bytes
        stop = int(np.searchsorted(ends, limit, side="right"))
        stop = min(max(stop, start + 1), start + max_rows, len(ends))
        yield start, stop
        start = stop

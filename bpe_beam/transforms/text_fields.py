r"""The field of a text: read in documents that have fields, and taken out where ids are put in.

A field is named as `ReadSettings` names it: `meta.body` is the field `body` of the record `meta`,
and a dot in a name is written `\.`. The ids of a text at the top take its place; the ids of another
text are a new field at the top, and its record loses the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint

from bpe_beam.corpus.read_settings import field_path
from bpe_beam.errors import DataError, UsageError

TOKENS = "tokens"
"""The field or column of a document's ids."""


def fields_of(document: Any) -> Mapping[str, Any] | None:
    """Return the fields of a dict or row; None for anything else."""
    if isinstance(document, Mapping):
        return document
    as_dict = getattr(document, "_asdict", None)  # of beam.Row, and of named tuples
    return None if as_dict is None else as_dict()


def text_in(fields: Mapping[str, Any], text_field: str) -> Any:
    """Return the value of a text field of a document."""
    value: Any = fields
    for name in field_path(text_field):
        inner = fields_of(value)
        if value is None:
            raise DataError(f"the field {text_field!r} of a document must be text, got null")
        if inner is None or name not in inner:
            raise DataError(no_field("document", text_field, fields if inner is None else inner))
        value = inner[name]
    return value


def with_ids(document: Any, text_field: str, ids: list[int]) -> Any:
    """Return a dict or row with a list of ids for its text."""
    fields = fields_of(document)
    assert fields is not None
    first, *inner = field_path(text_field)
    if not inner:
        changed = {
            TOKENS if name == first else name: ids if name == first else value
            for name, value in fields.items()
        }
    else:
        changed = {**fields, first: _without(fields[first], inner), TOKENS: ids}
    return changed if isinstance(document, Mapping) else beam.Row(**changed)


def _without(record: Any, path: Sequence[str]) -> Any:
    """Return a record without the field at a path."""
    fields = dict(fields_of(record) or {})
    first, *inner = path
    if inner:
        fields[first] = _without(fields[first], inner)
    else:
        del fields[first]
    return fields if isinstance(record, Mapping) else beam.Row(**fields)


def column_at(batch: Any, text_field: str) -> Any:
    """Return the column of a batch or table at a path."""
    first, *inner = field_path(text_field)
    column = column_of(batch, first, text_field)
    for name in inner:
        kind = column.type
        names = [field.name for field in kind] if pa.types.is_struct(kind) else []
        if name not in names:
            raise DataError(no_field("batch", text_field, names))
        import pyarrow.compute as pc  # slow to import

        column = pc.struct_field(column, [name])
    return column


def column_of(batch: Any, name: str, text_field: str | None = None) -> Any:
    """Return the only column of a batch or table with a name."""
    names = batch.schema.names
    if names.count(name) > 1:
        raise DataError(
            f"a batch has {names.count(name)} columns {name!r}: rename or drop all but one"
        )
    if name not in names:
        if text_field is not None:
            raise DataError(no_field("batch", text_field, names))
        raise DataError(f"a batch has no column {name!r}, only {', '.join(names)}")
    return batch.column(name)


def with_column_of_ids(batch: Any, text_field: str, ids: Any) -> Any:
    """Return a batch or table with a column of ids for that of its texts."""
    first, *inner = field_path(text_field)
    at = batch.schema.get_field_index(first)
    if not inner:
        return batch.remove_column(at).add_column(at, TOKENS, ids)
    record = batch.column(at)
    chunks = record.chunks if isinstance(record, pa.ChunkedArray) else [record]
    kept = [_without_child(chunk, inner) for chunk in chunks]
    column = pa.chunked_array(kept) if isinstance(record, pa.ChunkedArray) else kept[0]
    return batch.set_column(at, first, column).append_column(TOKENS, ids)


def _without_child(record: pa.StructArray, path: Sequence[str]) -> pa.StructArray:
    first, *inner = path
    names = [field.name for field in record.type]
    children = dict(zip(names, record.flatten(), strict=True))
    if inner:
        children[first] = _without_child(children[first], inner)
    else:
        del children[first]
    mask = record.is_null() if record.null_count else None
    if not children:
        return pa.array([{}] * len(record), pa.struct([]))
    return pa.StructArray.from_arrays([*children.values()], [*children], mask=mask)


def type_with_ids(fields: Sequence[tuple[str, Any]], text_field: str) -> RowTypeConstraint:
    """Return the type of rows of these fields with ids for their text."""
    first, *inner = field_path(text_field)
    names = [name for name, _ in fields]
    if first not in names:
        raise UsageError(no_field("row", text_field, names))
    if TOKENS in names and [first, *inner] != [TOKENS]:
        raise UsageError(has_tokens("row"))
    ids = Sequence[int]
    if not inner:
        return RowTypeConstraint.from_fields(
            [(TOKENS, ids) if name == first else (name, kind) for name, kind in fields]
        )
    inside = [(name, beam.typehints.Any if name == first else kind) for name, kind in fields]
    return RowTypeConstraint.from_fields([*inside, (TOKENS, ids)])


def no_field(what: str, text_field: str, names: Any) -> str:
    """Return the message for a document, row or batch that lacks the text field."""
    field = "column" if what == "batch" else "field"
    return (
        f"a {what} has no {field} {text_field!r}, only {', '.join(map(str, names))}; set "
        f"text_field to the {field} of the text"
    )


def has_tokens(what: str) -> str:
    """Return the message for a document, row or batch that has a field `tokens`."""
    field = "column" if what == "batch" else "field"
    return f"a {what} already has a {field} {TOKENS!r}: rename it first"

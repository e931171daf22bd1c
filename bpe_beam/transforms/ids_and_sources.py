"""Ids and sources of documents as text: from fields, columns and keys of the same kinds of values.

A label may be a string, UTF-8 `bytes`, a number, a date, a UUID, or anything else that Arrow writes
as text. None is no label.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa

from bpe_beam.corpus.reading.columns import names_in
from bpe_beam.errors import DataError
from bpe_beam.transforms import elements


def label_of(value: Any, what: str, transform: str) -> str | None:
    """Return a label as text.

    Args:
        value: The label.
        what: The holder of the label, as in "the field 'id' of a document".
        transform: The transform that an error names.
    """
    if isinstance(value, (str, bytes)):
        return elements.utf8_of(value, what).decode()
    if type(value) is int or isinstance(value, UUID):
        return str(value)
    try:
        column = pa.array([value])
    except (pa.ArrowException, OverflowError, TypeError):
        column = pa.array([{}])
    label: str | None = _texts(column, what, type(value).__name__, transform)[0].as_py()
    return label


def label_column(batch: Any, name: str, transform: str) -> pa.Array | None:
    """Return the labels in a column of a batch or table, large_string; None without the column."""
    if name not in batch.schema.names:
        return None
    column = elements.column_of(batch, name)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return _texts(column, f"the column {name!r} of a batch", column.type, transform)


def _texts(column: pa.Array, what: str, kind: object, transform: str) -> pa.Array:
    """Return labels as text; an error names their type, `kind`."""
    try:
        texts = names_in(column)
    except pa.ArrowException as error:
        raise DataError(f"{transform}: {what} is not valid text: {error}") from error
    if texts is None:
        raise DataError(
            f"{transform}: {what} must have strings, numbers, dates or UUIDs, got {kind}: convert "
            "or rename it"
        )
    return texts

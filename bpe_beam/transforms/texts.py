"""What the transforms take: texts as `str`, `bytes` or Arrow batches, gathered to Arrow arrays."""

from __future__ import annotations

import pyarrow as pa

from bpe_beam.errors import DataError

Element = str | bytes | pa.RecordBatch
"""One document as text or UTF-8, or many in a batch with a column `text`."""


def utf8_of(element: str | bytes) -> bytes:
    """A document's UTF-8.

    Raises:
        DataError: Bytes that are not UTF-8, or a str with a lone surrogate; tells where.
    """
    try:
        if isinstance(element, bytes):
            element.decode()
            return element
        return element.encode()
    except UnicodeError as error:
        raise DataError(
            f"a document is no valid text: {error}; clean it or leave it out"
        ) from error


def text_column(batch: pa.RecordBatch, name: str = "text") -> pa.Array:
    """The texts of a batch, in the column of that name, checked: strings, no null, valid UTF-8.

    Raises:
        DataError: A batch without them; tells what is wrong.
    """
    if name not in batch.schema.names:
        raise DataError(f"a batch has no column {name!r}, only {', '.join(batch.schema.names)}")
    texts = batch.column(name)
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise DataError(f"the column {name!r} of a batch holds {texts.type}, not strings")
    try:
        if texts.null_count:
            raise pa.ArrowInvalid(f"{texts.null_count} nulls")
        texts = texts.cast(pa.large_string())
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"the column {name!r} of a batch holds no valid texts: {error}") from error
    return texts


def array_of(utf8: list[bytes]) -> pa.Array:
    """Documents whose bytes `utf8_of` has checked, as an Arrow array."""
    return pa.array(utf8, pa.large_binary()).cast(pa.large_string(), safe=False)

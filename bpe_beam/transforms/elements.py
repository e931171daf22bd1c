"""The elements that the transforms take: documents, and documents whose text became tokens.

A document is a `str`, UTF-8 `bytes`, a dict, a row (`beam.Row` or a named tuple), or a row of an
Arrow batch or table. Any of them may have a key: `(key, document)`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import named_fields_from_element_type

from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.transforms.text_fields import TOKENS as TOKENS
from bpe_beam.transforms.text_fields import column_at, has_tokens, text_in, type_with_ids
from bpe_beam.transforms.text_fields import column_of as column_of
from bpe_beam.transforms.text_fields import fields_of as fields_of

ANY = beam.typehints.Any

_DictHint = type(beam.typehints.Dict[str, str])
_TupleHint = type(beam.typehints.Tuple[str, str])

Element: TypeAlias = Any
"""One document, or many in an Arrow batch or table, with or without a key. Beam does not know the
type of every element before a pipeline runs, so the type is checked when the element is read."""

_TEXT_TYPES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_DOCUMENT_TYPES = (
    "str, bytes, a dict, a row, an Arrow batch or table, or a pair of a key and one of them"
)


def without_key(element: Element) -> Any:
    """Return the element without its key, if it has one."""
    while has_key(element):
        element = element[1]
    return element


def with_value(element: Element, value: Any) -> Any:
    """Return another value under the element's key, if it has one."""
    return (element[0], with_value(element[1], value)) if has_key(element) else value


def is_batch(value: Any) -> bool:
    """Return whether a value is an Arrow batch or table."""
    return isinstance(value, (pa.RecordBatch, pa.Table))


def document_utf8(document: Any, text_field: str) -> bytes:
    """Return the UTF-8 of a document's text."""
    if isinstance(document, (str, bytes)):
        return utf8_of(document)
    fields = fields_of(document)
    if fields is None:
        raise DataError(f"a document must be {_DOCUMENT_TYPES}, got {type(document).__name__}")
    return utf8_of(text_in(fields, text_field), f"the field {text_field!r} of a document")


def utf8_of(text: Any, what: str = "a document") -> bytes:
    """Return the UTF-8 of a text."""
    if not isinstance(text, (str, bytes)):
        kind = "null" if text is None else type(text).__name__
        raise DataError(f"{what} must be text, got {kind}")
    try:
        if isinstance(text, bytes):
            text.decode()
            return text
        return text.encode()
    except UnicodeError as error:
        raise DataError(
            f"{what} is not valid text: {error}; correct it or filter it out"
        ) from error


def string_array(utf8: list[bytes]) -> pa.Array:
    """Return an Arrow array of strings from UTF-8 that was already checked."""
    return pa.array(utf8, pa.large_binary()).cast(pa.large_string(), safe=False)


def refuse_tokens(value: Any, text_field: str) -> None:
    """Refuse a document or batch that already has a field or column `tokens`."""
    if text_field == TOKENS or isinstance(value, (str, bytes)):
        return
    if is_batch(value) and TOKENS in value.schema.names:
        raise DataError(has_tokens("batch"))
    if TOKENS in (fields_of(value) or ()):
        raise DataError(has_tokens("document"))


def text_column(batch: Any, name: str = "text") -> pa.Array:
    """Return the texts of an Arrow batch or table, checked: strings, no null, valid UTF-8."""
    if not is_batch(batch):
        raise DataError(f"an element must be an Arrow batch, got {type(batch).__name__}")
    texts = column_at(batch, name)
    if not is_text_type(texts.type):
        raise DataError(f"the column {name!r} of a batch must have strings, got {texts.type}")
    try:
        if texts.null_count:
            raise pa.ArrowInvalid(f"{texts.null_count} nulls")
        texts = texts.cast(pa.large_string())
        texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"the column {name!r} of a batch has invalid texts: {error}") from error
    return texts


def tokens_type(element_type: Any, text_field: str) -> Any:
    """Return the type of the elements that `Tokenize` returns; Any if it is unknown."""
    if element_type in (pa.RecordBatch, pa.Table):
        return element_type
    if element_type in (str, bytes):
        return pa.UInt32Array
    if isinstance(element_type, _DictHint):
        return JsonObject
    if isinstance(element_type, _TupleHint):
        types = element_type.tuple_types
        if len(types) == 2 and not _is_row_type(element_type):
            return beam.typehints.Tuple[types[0], tokens_type(types[1], text_field)]
    if _is_row_type(element_type):
        known = isinstance(element_type, RowTypeConstraint)
        fields = element_type._fields if known else named_fields_from_element_type(element_type)
        return type_with_ids(fields, text_field)
    if element_type in (int, float, bool, type(None)):
        raise UsageError(f"elements must be {_DOCUMENT_TYPES}, got {element_type.__name__}")
    return ANY


def has_key(element: Element) -> bool:
    """Return whether an element is a pair of a key and a document."""
    return type(element) is tuple and len(element) == 2


def is_text_type(kind: pa.DataType) -> bool:
    """Return whether the values of an Arrow type are strings, maybe in a dictionary."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(is_text(kind) for is_text in _TEXT_TYPES)


def has_texts(batch: Any, text_field: str) -> bool:
    """Return whether a batch has a text column, so that single rows may be unusable."""
    try:
        return is_text_type(column_at(batch, text_field).type)
    except DataError:
        return False


def _is_row_type(element_type: Any) -> bool:
    return isinstance(element_type, RowTypeConstraint) or hasattr(element_type, "_fields")

"""`TokenizeColumns`: an operation of Beam's `MLTransform`, whose artifacts contain the tokenizer.

`write_artifact_location` is the folder to which the tokenizer and its settings are written. A
pipeline with the same folder as `read_artifact_location` tokenizes with them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import apache_beam as beam
from apache_beam.ml.transforms.base import MLTransformProvider

from bpe_beam.errors import DataError
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms.elements import string_array, utf8_of
from bpe_beam.transforms.metrics import count_tokens
from bpe_beam.transforms.tokenize import encoding_of
from bpe_beam.workers.document_encoding import Encoding


class TokenizeColumns(MLTransformProvider):
    """Replaces the texts in some columns of dicts by lists of their ids."""

    def __init__(
        self,
        columns: Collection[str],
        tokenizer: Tokenizer,
        *,
        append: str | None = None,
        prepend: str | None = None,
        allowed_special: str | Collection[str] = "none",
        add_special_tokens: bool = False,
    ) -> None:
        super().__init__()
        encoding = encoding_of(
            tokenizer,
            append=append,
            prepend=prepend,
            allowed_special=allowed_special,
            add_special_tokens=add_special_tokens,
        )
        self.columns = list(columns)
        self.settings = {
            "tokenizer_json": tokenizer.to_json(),
            "append": append,
            "prepend": prepend,
            "allowed_special": encoding.allowed_special,
            "add_special_tokens": add_special_tokens,
        }

    def get_ptransform_for_processing(self, **_: Any) -> beam.PTransform:
        return _TokenizeColumns(self.columns, self.settings)


class _TokenizeColumns(beam.PTransform):
    """The transform of `TokenizeColumns`, with plain values because Beam stores it as JSON."""

    def __init__(self, columns: list[str], settings: JsonObject) -> None:
        super().__init__()
        self.columns = columns
        self.settings = settings

    def expand(self, rows: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        encode = beam.Map(_encode_columns, self.columns, Encoding(**self.settings))
        return rows | "Encode" >> encode.with_output_types(JsonObject)


def _encode_columns(row: Any, columns: list[str], encoding: Encoding) -> JsonObject:
    if not isinstance(row, Mapping):
        raise DataError(f"a row must be a dict, got {type(row).__name__}")
    missing = [column for column in columns if row.get(column) is None]
    if missing:
        raise DataError(f"a row has no {', '.join(missing)}, only {', '.join(row)}")
    utf8 = [utf8_of(row[column], f"the column {column!r} of a row") for column in columns]
    ids = encoding.encode(string_array(utf8))
    count_tokens(ids)
    return {**row, **dict(zip(columns, ids.to_pylist(), strict=True))}

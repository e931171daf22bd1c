"""`Tokenize` as an operation of Beam's `MLTransform`, which keeps what it was done with.

With `write_artifact_location` the tokenizer and its settings are written there; another pipeline
that is given `read_artifact_location` tokenizes by the same ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import apache_beam as beam
from apache_beam.ml.transforms.base import MLTransformProvider

from bpe_beam.errors import DataError
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.elements import array_of, utf8_of
from bpe_beam.workers import metric_names as measures
from bpe_beam.workers.document_encoding import Encoding


class TokenizeColumns(MLTransformProvider):
    """Replaces the texts in some columns of dicts by lists of their ids.

    Args:
        columns: The columns.
        tokenizer: The tokenizer.
        append: Token put after each text.
        prepend: Token put before each text.
        allowed_special: Special tokens that count as such in the text: "none", "all", or some.

    Raises:
        UsageError: A token that the tokenizer does not have.
    """

    def __init__(
        self,
        columns: Collection[str],
        tokenizer: Tokenizer,
        *,
        append: str | None = None,
        prepend: str | None = None,
        allowed_special: str | Collection[str] = "none",
    ) -> None:
        super().__init__()
        encoding = Encoding.of(
            tokenizer, append=append, prepend=prepend, allowed_special=allowed_special
        )
        self.columns = list(columns)
        self.settings = {
            "tokenizer_json": encoding.tokenizer_json,
            "append": append,
            "prepend": prepend,
            "allowed_special": encoding.allowed_special,
        }

    def get_ptransform_for_processing(self, **_: Any) -> beam.PTransform:
        """The step, which is what the artifacts keep."""
        return _TokenizeColumns(self.columns, self.settings)


class _TokenizeColumns(beam.PTransform):
    """The step: of plain values, since it is kept as JSON."""

    def __init__(self, columns: list[str], settings: dict[str, Any]) -> None:
        super().__init__()
        self.columns = columns
        self.settings = settings

    def expand(self, rows: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Wires the step."""
        encode = beam.ParDo(_EncodeColumns(self.columns, Encoding(**self.settings)))
        return rows | "Encode" >> encode.with_output_types(dict[str, Any])


class _EncodeColumns(beam.DoFn):
    """One row's texts to ids."""

    def __init__(self, columns: list[str], encoding: Encoding) -> None:
        self.columns = columns
        self.encoding = encoding

    def process(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Encodes the columns of one row."""
        if not isinstance(row, Mapping):
            raise DataError(f"a row is a {type(row).__name__}, not a dict")
        missing = [column for column in self.columns if row.get(column) is None]
        if missing:
            raise DataError(f"a row has no {', '.join(missing)}, only {', '.join(row)}")
        texts = array_of(
            [utf8_of(row[column], f"the column {column!r} of a row") for column in self.columns]
        )
        ids = self.encoding.encode(texts)
        counters.counter(measures.DOCUMENTS_TOKENIZED).inc(len(ids))
        counters.counter(measures.TOKENS_MADE).inc(len(ids.flatten()))
        yield {**row, **dict(zip(self.columns, ids.to_pylist(), strict=True))}

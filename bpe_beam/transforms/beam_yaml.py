"""The transforms for Beam YAML: rows in, rows out, settings as plain values.

A provider of type `python` names them:

    providers:
      - type: python
        config: {}
        transforms:
          ReadDocuments: bpe_beam.transforms.beam_yaml.ReadDocuments
          CountWords: bpe_beam.transforms.beam_yaml.CountWords
          Tokenize: bpe_beam.transforms.beam_yaml.Tokenize
          WriteTokens: bpe_beam.transforms.beam_yaml.WriteTokens

Cost: a row an element, as Beam YAML has it, so some ten microseconds a document beside the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Optional

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import named_fields_from_element_type

from bpe_beam import transforms
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.elements import array_of, utf8_of
from bpe_beam.workers import metric_names as measures
from bpe_beam.workers.document_encoding import Encoding

# Beam's schemas know Optional, not a union.
_Text = Optional[str]  # noqa: UP045


class ReadDocuments(beam.PTransform):
    """Reads documents: rows of `id`, `source` (both may be null) and `text`.

    Args:
        input: Paths, URLs, globs or `@file` lists: one or a list.
        input_format: The files' format; "auto" goes by their first bytes and names.
        text_field: Field or column of the text.
        id_field: Field or column of the id.
        document_separator: What ends a document of a text file.
        rejects: Folder for records that cannot be used; without one such a record fails the run.
        max_lost: How many stored bytes may be lost in damaged files: a number, or a share such as
            "0.1%".

    Raises:
        UsageError: No such files, or a setting out of its range.
    """

    def __init__(
        self,
        input: str | list[str],
        input_format: str = "auto",
        text_field: str = "text",
        id_field: str = "id",
        document_separator: str = "\n",
        rejects: _Text = None,
        max_lost: str = "0",
    ) -> None:
        super().__init__()
        settings = ReadSettings(
            input_format=input_format,
            text_field=text_field,
            id_field=id_field,
            document_separator=document_separator,
        )
        inputs = [input] if isinstance(input, str) else input
        self.read = transforms.ReadDocuments(inputs, settings, rejects=rejects, max_lost=max_lost)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Wires the steps."""
        fields = [("id", _Text), ("source", _Text), ("text", str)]
        return begin | "Read" >> self.read | "ToRows" >> _to_rows(fields)


class CountWords(beam.PTransform):
    """Counts the words of a field of rows: rows of `word` and `count`, each word once a window.

    Args:
        field: The field of the text.
        normalizer: Name of the normalizer.
        pretokenizer: Name of the pre-tokenizer, or `regex:PATTERN`.
        special_tokens: Cut out of the text and not counted; one, or a list.

    Raises:
        UsageError: A setting out of its range, or rows without such a field.
    """

    def __init__(
        self,
        field: str = "text",
        normalizer: str = "none",
        pretokenizer: str = "gpt2",
        special_tokens: str | Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.field = field
        special = [special_tokens] if isinstance(special_tokens, str) else special_tokens
        self.count = transforms.CountWords(
            normalizer=normalizer, pretokenizer=pretokenizer, special_tokens=special
        )

    def expand(self, rows: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Wires the steps."""
        _text_fields_with(rows, self.field)
        return (
            rows
            | "Texts" >> beam.ParDo(_TextOf(self.field))
            | "Count" >> self.count
            | "ToRows" >> _to_rows([("word", str), ("count", int)])
        )


class Tokenize(beam.PTransform):
    """Adds the ids of a field's text to rows: the same rows with a list of integers more.

    Args:
        tokenizer: Path or URL of a `tokenizer.json`, which is read when the pipeline is built.
        field: The field of the text.
        into: The new field.
        append: Token put after each document.
        prepend: Token put before each document.
        allowed_special: Special tokens that count as such in the text: "none", "all", or a list.

    Raises:
        UsageError: A tokenizer or token that does not exist, rows without such a field, or with
            one of the new name.
    """

    def __init__(
        self,
        tokenizer: str,
        field: str = "text",
        into: str = "tokens",
        append: _Text = None,
        prepend: _Text = None,
        allowed_special: str | list[str] = "none",
    ) -> None:
        super().__init__()
        self.field = field
        self.into = into
        self.encoding = Encoding.of(
            Tokenizer.from_file(tokenizer),
            append=append,
            prepend=prepend,
            allowed_special=allowed_special,
        )

    def expand(self, rows: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Wires the steps."""
        fields = _text_fields_with(rows, self.field)
        if self.into in dict(fields):
            raise UsageError(f"into: the rows have a field {self.into} already: name another")
        made = RowTypeConstraint.from_fields([*fields, (self.into, Sequence[int])])
        encode = beam.ParDo(_AddTokens(self.encoding, self.field, self.into))
        return rows | "Encode" >> encode.with_output_types(made)


class WriteTokens(beam.PTransform):
    """Writes ids of a field of rows as a folder of shards: one row with the `manifest`'s URL.

    Args:
        folder: An empty or new folder.
        tokenizer: Path or URL of the `tokenizer.json` that made the ids.
        field: The field of the ids.
        shards: How many shards.

    Raises:
        UsageError: A folder that holds something, a tokenizer that does not exist, or rows without
            such a field.
    """

    def __init__(self, folder: str, tokenizer: str, field: str = "tokens", shards: int = 1) -> None:
        super().__init__()
        self.field = field
        self.write = transforms.WriteTokens(folder, Tokenizer.from_file(tokenizer), shards=shards)

    def expand(self, rows: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Wires the steps."""
        _fields_with(rows, self.field)
        return (
            rows
            | "Ids" >> beam.ParDo(_IdsOf(self.field))
            | "Write" >> self.write
            | "ToRow" >> beam.ParDo(_ManifestRow()).with_output_types(_row_of(("manifest", str)))
        )


def _row_of(*fields: tuple[str, Any]) -> Any:
    return RowTypeConstraint.from_fields(list(fields))


def _to_rows(fields: list[tuple[str, Any]]) -> beam.PTransform:
    names = tuple(name for name, _ in fields)
    return beam.ParDo(_BatchToRows(names)).with_output_types(_row_of(*fields))


def _fields_with(rows: beam.pvalue.PCollection, field: str) -> list[tuple[str, Any]]:
    """The fields of rows, of which one must be there."""
    try:
        fields = named_fields_from_element_type(rows.element_type)
    except (TypeError, ValueError):
        raise UsageError(
            f"field {field}: the elements are no rows with a schema but {rows.element_type}: make "
            "rows of them before"
        ) from None
    if field not in dict(fields):
        raise UsageError(
            f"field {field}: the rows have none of this name, only "
            f"{', '.join(name for name, _ in fields)}"
        )
    return list(fields)


def _text_fields_with(rows: beam.pvalue.PCollection, field: str) -> list[tuple[str, Any]]:
    """As `_fields_with`; the field must be text."""
    fields = _fields_with(rows, field)
    hint = dict(fields)[field]
    if hint not in (str, Any, beam.typehints.Any, _Text, beam.typehints.Optional[str]):
        raise UsageError(f"field {field}: it holds {hint}, not text: name another, or map it")
    return fields


def _value(row: Any, field: str) -> Any:
    """A field of a row that must be there.

    Raises:
        DataError: It is null.
    """
    value = getattr(row, field)
    if value is None:
        raise DataError(f"a row has null as its {field}: filter such rows out before")
    return value


@beam.typehints.with_input_types(pa.RecordBatch)
class _BatchToRows(beam.DoFn):
    """A batch to its rows."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def process(self, batch: pa.RecordBatch) -> Iterator[beam.Row]:
        """Makes the rows."""
        for row in batch.select(self.names).to_pylist():
            yield beam.Row(**row)


@beam.typehints.with_output_types(str)
class _TextOf(beam.DoFn):
    """A row to its text."""

    def __init__(self, field: str) -> None:
        self.field = field

    def process(self, row: Any) -> Iterator[str]:
        """Takes the text."""
        yield _value(row, self.field)


class _AddTokens(beam.DoFn):
    """A row to the same with its ids."""

    def __init__(self, encoding: Encoding, field: str, into: str) -> None:
        self.encoding = encoding
        self.field = field
        self.into = into

    def process(self, row: Any) -> Iterator[beam.Row]:
        """Encodes one row's text."""
        ids = self.encoding.encode(array_of([utf8_of(_value(row, self.field))])).flatten()
        counters.counter(measures.DOCUMENTS_TOKENIZED).inc()
        counters.counter(measures.TOKENS_MADE).inc(len(ids))
        yield beam.Row(**row._asdict(), **{self.into: ids.to_pylist()})


@beam.typehints.with_output_types(pa.UInt32Array)
class _IdsOf(beam.DoFn):
    """A row to its ids."""

    def __init__(self, field: str) -> None:
        self.field = field

    def process(self, row: Any) -> Iterator[pa.UInt32Array]:
        """Takes the ids."""
        yield pa.array(_value(row, self.field), pa.uint32())


@beam.typehints.with_input_types(str)
class _ManifestRow(beam.DoFn):
    """A URL to its row."""

    def process(self, url: str) -> Iterator[beam.Row]:
        """Makes the row."""
        yield beam.Row(manifest=url)

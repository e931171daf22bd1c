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

Beam YAML makes each row an element, which costs about ten microseconds per document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import named_fields_from_element_type

from bpe_beam import transforms
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.transforms.document_chunks import LABELS
from bpe_beam.transforms.elements import TOKENS, string_array, utf8_of
from bpe_beam.transforms.metrics import count_tokens
from bpe_beam.transforms.token_origin import ChosenTokenizer, TokensMaker, tokenizer_errors
from bpe_beam.transforms.tokenize import encoding_of
from bpe_beam.workers.document_encoding import Encoding

# Beam's schemas know Optional, not a union.
_Text = Optional[str]  # noqa: UP045
_ErrorHandling = Optional[Mapping[str, str]]  # noqa: UP045


def _field(field: str | Mapping[str, str]) -> str | tuple[tuple[str, str], ...]:
    return field if isinstance(field, str) else tuple(dict(field).items())


class ReadDocuments(beam.PTransform):
    """Reads documents: rows of `id`, `source` (both may be null) and `text`.

    Args:
        input: A path, URL, glob or `@file` list, or a list of them.
        input_format: The files' format; "auto" detects it from their first bytes and names.
        text_field: Field or column of the text; or a mapping of folders, files or globs to fields,
            where `*` means all others.
        id_field: Field or column of the id; or such a mapping.
        document_separator: The text that ends a document of a text file.
        rejects: Folder for unusable records; without one such a record fails the run.
        max_lost: Maximum stored bytes that may be lost in damaged files: a number, or a share
            such as "0.1%".

    Raises:
        UsageError: No such files, or an argument out of its range.
    """

    def __init__(
        self,
        input: str | list[str],
        input_format: str = "auto",
        text_field: str | Mapping[str, str] = "text",
        id_field: str | Mapping[str, str] = "id",
        document_separator: str = "\n",
        rejects: _Text = None,
        max_lost: str = "0",
    ) -> None:
        super().__init__()
        settings = ReadSettings(
            input_format=input_format,
            text_field=_field(text_field),
            id_field=_field(id_field),
            document_separator=document_separator,
        )
        inputs = [input] if isinstance(input, str) else input
        self.read = transforms.ReadDocuments(inputs, settings, rejects=rejects, max_lost=max_lost)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        fields = [("id", _Text), ("source", _Text), ("text", str)]
        return begin | "Read" >> self.read | "ToRows" >> _to_rows(fields)


class CountWords(beam.PTransform):
    """Counts the words of a field of rows: rows of `word` and `count`, each word once per window.

    Args:
        field: The field of the text.
        normalizer: Name of the normalizer.
        pretokenizer: Name of the pre-tokenizer, or `regex:PATTERN`.
        special_tokens: Texts that are extracted from documents and not counted; one, or a list.
        error_handling: `output: NAME`, for a second output of unusable rows.

    Raises:
        UsageError: An argument out of its range, or rows without such a field.
    """

    def __init__(
        self,
        field: str = "text",
        normalizer: str = "none",
        pretokenizer: str = "gpt2",
        special_tokens: str | Sequence[str] = (),
        error_handling: _ErrorHandling = None,
    ) -> None:
        super().__init__()
        self.field = field
        self.error_handling = error_handling
        special = [special_tokens] if isinstance(special_tokens, str) else special_tokens
        self.count = transforms.CountWords(
            normalizer=normalizer,
            pretokenizer=pretokenizer,
            special_tokens=special,
            text_field=field,
        )

    def expand(self, rows: beam.pvalue.PCollection) -> Any:
        _text_fields_with(rows, self.field)
        words, errors = _with_errors(rows, "Count", self.count, self.error_handling)
        counted = words | "ToRows" >> _to_rows([("word", str), ("count", int)])
        return counted if errors is None else {"good": counted, **errors}


class Tokenize(TokensMaker):
    """Adds a field with the ids of a text to rows.

    Args:
        tokenizer: Path or URL of a `tokenizer.json`, which is read when the pipeline is built.
        field: The field of the text.
        into: The new field.
        append: Token added after each document.
        prepend: Token added before each document.
        allowed_special: Special tokens that are recognized in the text: "none", "all", or a list.
        add_special_tokens: Whether the tokens of the tokenizer's post-processor, such as `<s>`, are
            put around each document; without it, a warning names these tokens.
        error_handling: `output: NAME`, for a second output of unusable rows.

    Raises:
        UsageError: A tokenizer or token that does not exist, rows without such a field, or rows
            that already have a field of the new name.
    """

    def __init__(
        self,
        tokenizer: str,
        field: str = "text",
        into: str = "tokens",
        append: _Text = None,
        prepend: _Text = None,
        allowed_special: str | list[str] = "none",
        add_special_tokens: bool = False,
        error_handling: _ErrorHandling = None,
    ) -> None:
        super().__init__()
        self.field = field
        self.error_handling = error_handling
        self.into = into
        storage = Storage()
        self.tokenizer = ChosenTokenizer.of(tokenizer, storage)
        encoding = encoding_of(
            self.tokenizer.known,
            append=append,
            prepend=prepend,
            allowed_special=allowed_special,
            add_special_tokens=add_special_tokens,
        )
        self.encoding = self.tokenizer.travelling(encoding, storage)

    def expand(self, rows: beam.pvalue.PCollection) -> Any:
        fields = _text_fields_with(rows, self.field)
        if self.into in dict(fields):
            raise UsageError(f"into must be a new field, got {self.into}, which the rows have")
        row_type = RowTypeConstraint.from_fields([*fields, (self.into, Sequence[int])])
        encode = beam.Map(_with_tokens, self.encoding, self.field, self.into)
        step = encode.with_output_types(row_type)
        tokens, errors = _with_errors(
            rows, "Encode", step, self.error_handling, exc_class=DataError
        )
        return tokens if errors is None else {"good": tokens, **errors}


class WriteTokens(beam.PTransform):
    """Writes the ids in a field of rows as a folder of shards; the row has the `manifest`'s URL.

    Args:
        folder: An empty or new folder.
        tokenizer: Path or URL of the `tokenizer.json` that made the ids.
        field: The field of the ids.
        shards: Maximum number of shards, from 1 to 100,000.
        format: The format of the shards. `parquet` and `arrow` get the fields `id` and `source`.
        overwrite: Whether to remove what a job or another run wrote in the folder.

    Raises:
        UsageError: A folder that is not empty, a tokenizer that does not exist, or rows without
            such a field.
    """

    def __init__(
        self,
        folder: str,
        tokenizer: str,
        field: str = "tokens",
        shards: int = 1,
        format: str = DEFAULT_SHARD_FORMAT,
        overwrite: bool = False,
    ) -> None:
        super().__init__()
        self.field = field
        self.write = transforms.WriteTokens(
            folder,
            tokenizer,
            shards=shards,
            format=format,
            overwrite=overwrite,
        )

    def expand(self, rows: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        _fields_with(rows, self.field)
        row_type = RowTypeConstraint.from_fields([("manifest", str)])
        return (
            rows
            | "Ids" >> beam.Map(_ids, self.field).with_output_types(JsonObject)
            | "Write" >> self.write
            | "ToRow" >> beam.Map(_manifest_row).with_output_types(row_type)
        )


def _with_errors(
    rows: beam.pvalue.PCollection,
    label: str,
    transform: beam.PTransform,
    error_handling: Mapping[str, str] | None,
    **options: Any,
) -> tuple[beam.pvalue.PCollection, dict[str, beam.pvalue.PCollection] | None]:
    """Return a transform's output, and with `error_handling` the rows that it could not use by the
    name of their output, in the form in which Beam YAML has errors."""
    if error_handling is None:
        return rows | label >> transform, None
    known = {key: value for key, value in error_handling.items() if not key.startswith("__")}
    if known.keys() != {"output"}:
        raise UsageError(
            f"error_handling must be the name of an output, as in {{output: errors}}, got {known}"
        )
    name = known["output"]
    if name == "good":
        raise UsageError("error_handling must name another output than the rows', good")
    outputs = rows | label >> transform.with_exception_handling(dead_letter_tag=name, **options)
    row_type = RowTypeConstraint.from_fields(
        [("element", rows.element_type), ("msg", str), ("stack", str)]
    )
    as_row = beam.MapTuple(_error_row).with_output_types(row_type)
    return outputs["good"], {name: outputs[name] | "ErrorRows" >> as_row}


def _error_row(element: Any, error: tuple[type, str, list[str]]) -> beam.Row:
    _, message, stack = error
    return beam.Row(element=element, msg=str(message), stack="".join(stack))


def _to_rows(fields: list[tuple[str, Any]]) -> beam.PTransform:
    names = tuple(name for name, _ in fields)
    return beam.FlatMap(_rows_in, names).with_output_types(RowTypeConstraint.from_fields(fields))


def _fields_with(rows: beam.pvalue.PCollection, field: str) -> list[tuple[str, Any]]:
    """Return the names and types of the rows' fields; `field` must be one of them."""
    try:
        fields = named_fields_from_element_type(rows.element_type)
    except (TypeError, ValueError):
        raise UsageError(
            f"field {field}: the elements must be rows with a schema, got {rows.element_type}; "
            "convert them to rows first"
        ) from None
    if field not in dict(fields):
        raise UsageError(
            f"field must be one of {', '.join(name for name, _ in fields)}, got {field}"
        )
    return list(fields)


def _text_fields_with(rows: beam.pvalue.PCollection, field: str) -> list[tuple[str, Any]]:
    """Return the names and types of the rows' fields; `field` must be a text field of them."""
    fields = _fields_with(rows, field)
    hint = dict(fields)[field]
    if hint not in (str, Any, beam.typehints.Any, _Text, beam.typehints.Optional[str]):
        raise UsageError(f"field {field} must be text, got {hint}; name another, or convert it")
    return fields


def _value(row: Any, field: str) -> Any:
    """Return a field of a row, which must not be null."""
    value = getattr(row, field)
    if value is None:
        raise DataError(f"a row has null as its {field}: filter such rows out first")
    return value


def _rows_in(batch: pa.RecordBatch, names: tuple[str, ...]) -> list[beam.Row]:
    return [beam.Row(**row) for row in batch.select(names).to_pylist()]


def _with_tokens(row: Any, encoding: Encoding, field: str, into: str) -> beam.Row:
    with tokenizer_errors():
        tokenizer = encoding.tokenizer()
    ids = encoding.encode(string_array([utf8_of(_value(row, field))]), tokenizer)
    count_tokens(ids)
    return beam.Row(**row._asdict(), **{into: ids.values.to_pylist()})


def _ids(row: Any, field: str) -> JsonObject:
    """Return the ids and the labels of a document, as `transforms.WriteTokens` takes them."""
    labels = {name: getattr(row, name, None) for name in LABELS if name != field}
    return {**labels, TOKENS: pa.array(_value(row, field), pa.uint32())}


def _manifest_row(url: str) -> beam.Row:
    return beam.Row(manifest=url)

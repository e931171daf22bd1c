"""The transforms for Beam YAML: rows in, rows out, settings as plain values.

A provider of type `python` names them:

    providers:
      - type: python
        config: {}
        transforms:
          ReadDocuments: bpe_beam.transforms.beam_yaml.ReadDocuments
          CountWords: bpe_beam.transforms.beam_yaml.CountWords
          WriteCounts: bpe_beam.transforms.beam_yaml.WriteCounts
          ReadCounts: bpe_beam.transforms.beam_yaml.ReadCounts
          LearnMerges: bpe_beam.transforms.beam_yaml.LearnMerges
          Tokenize: bpe_beam.transforms.beam_yaml.Tokenize
          WriteTokens: bpe_beam.transforms.beam_yaml.WriteTokens

Beam YAML makes each row an element, which costs about ten microseconds per document or counted
word. Rows of counted words have no totals of their documents: `WriteCounts` and `LearnMerges` take
these from the `CountWords` and `ReadCounts` that made the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import apache_beam as beam
import msgspec
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import named_fields_from_element_type
from apache_beam.utils.windowed_value import WindowedValue

from bpe_beam import json_structs, transforms
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.counts.word_table import data_errors, schema_of
from bpe_beam.errors import DataError, UsageError, require, require_choice
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.training.recipe import (
    BpeRecipe,
    MinGramRecipe,
    Recipe,
    UnigramRecipe,
    WordLevelRecipe,
    WordPieceRecipe,
)
from bpe_beam.transforms.document_chunks import LABELS
from bpe_beam.transforms.elements import ANY, TOKENS, string_array, utf8_of
from bpe_beam.transforms.learn_merges import MEMORY_BYTES, Weight
from bpe_beam.transforms.metrics import count_tokens
from bpe_beam.transforms.producers import producers_of
from bpe_beam.transforms.token_origin import ChosenTokenizer, TokensMaker, tokenizer_errors
from bpe_beam.transforms.tokenize import encoding_of
from bpe_beam.workers.document_encoding import Encoding

# Beam's schemas know Optional, not a union.
_Text = Optional[str]  # noqa: UP045
_Field = str | Mapping[str, str]
_ErrorHandling = Optional[Mapping[str, str]]  # noqa: UP045


_BATCH_BYTES, _ROW_BYTES = 1 << 20, 32
"""The size of a batch of counted words, and of a row without its word."""

_RECIPES: dict[str, type[Recipe]] = {
    "bpe": BpeRecipe,
    "wordpiece": WordPieceRecipe,
    "word_level": WordLevelRecipe,
    "unigram": UnigramRecipe,
    "mingram": MinGramRecipe,
}


def _field(field: _Field) -> str | tuple[tuple[str, str], ...]:
    return field if isinstance(field, str) else tuple(dict(field).items())


def _source_pairs(sources: Mapping[str, str | list[str]]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a source and a glob."""
    require(
        isinstance(sources, Mapping),
        f"must be a mapping of sources to globs, got {sources!r}",
        "sources",
    )
    return tuple(
        (name, glob)
        for name, globs in sources.items()
        for glob in (globs if isinstance(globs, list) else [globs])
    )


class ReadDocuments(beam.PTransform):
    """Reads documents: rows of `id`, `source` (both may be null) and `text`.

    Args:
        input: A path, URL, glob or `@file` list, or a list of them.
        input_format: The files' format; "auto" detects it from their first bytes and names.
        text_field: Field or column of the text; or a mapping of folders, files or globs to fields,
            where `*` means all others.
        id_field: Field or column of the id; or such a mapping.
        document_separator: The text that ends a document of a text file.
        source_field: Field or column that names a document's source; or such a mapping.
        sources: A mapping of sources to a glob of their files, or a list of globs; without it and
            without `source_field`, a document's source is the name of its file.
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
        text_field: _Field = "text",
        id_field: _Field = "id",
        document_separator: str = "\n",
        source_field: _Field | None = None,
        sources: Mapping[str, str | list[str]] | None = None,
        rejects: _Text = None,
        max_lost: str = "0",
    ) -> None:
        super().__init__()
        settings = ReadSettings(
            input_format=input_format,
            text_field=_field(text_field),
            id_field=_field(id_field),
            document_separator=document_separator,
            source_field=None if source_field is None else _field(source_field),
            sources=_source_pairs(sources or {}),
        )
        inputs = [input] if isinstance(input, str) else input
        self.read = transforms.ReadDocuments(inputs, settings, rejects=rejects, max_lost=max_lost)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        fields = [("id", _Text), ("source", _Text), ("text", str)]
        return begin | "Read" >> self.read | "ToRows" >> _to_rows(fields)


class CountWords(beam.PTransform):
    """Counts the words of a field of rows: rows of `word` and `count`, each word once per window.

    With `by_source` also `source`, and each word once for each source.

    Args:
        field: The field of the text.
        normalizer: Name of the normalizer.
        pretokenizer: Name of the pre-tokenizer, or `regex:PATTERN`.
        special_tokens: Texts that are extracted from documents and not counted; one, or a list.
        by_source: Whether to count each source, the field `source` of the rows, by itself.
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
        by_source: bool = False,
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
            by_source=by_source,
        )

    def expand(self, rows: beam.pvalue.PCollection) -> Any:
        fields = _text_fields_with(rows, self.field)
        by_source = self.count.by_source
        require(
            not by_source or "source" in dict(fields),
            f"needs rows with a field source, got {', '.join(dict(fields))}",
            "by_source",
        )
        words, errors = _with_errors(rows, "Count", self.count, self.error_handling)
        counted = words | "ToRows" >> _to_rows(_word_fields(False, by_source))
        return counted if errors is None else {"good": counted, **errors}


class WriteCounts(beam.PTransform):
    """Writes rows of counted words as a counts folder; the row has the `manifest`'s URL.

    Args:
        folder: An empty or new folder.
        overwrite: Whether to remove what a job or another run wrote in the folder.

    Raises:
        UsageError: A folder that is not empty, or rows that do not come from `CountWords` or
            `ReadCounts`.
    """

    def __init__(self, folder: str, overwrite: bool = False) -> None:
        super().__init__()
        self.write = transforms.WriteCounts(folder, overwrite=overwrite)

    def expand(self, rows: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        words = _word_batches(rows, "WriteCounts", "WriteCounts")
        return words | "Write" >> self.write | "ToRow" >> _to_row_of("manifest")


class ReadCounts(beam.PTransform):
    """Reads a counts folder: rows of `word` and `count`, and `source` if the folder has sources.

    Args:
        folder: The counts folder. If it has places, the rows have `first_document` and
            `first_word` too.

    Raises:
        UsageError: A folder that is no finished counts folder.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.read = transforms.ReadCounts(folder)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        manifest = self.read.manifest
        fields = _word_fields(manifest.with_places, manifest.sources is not None)
        return begin | "Read" >> self.read | "ToRows" >> _to_rows(fields)


class LearnMerges(beam.PTransform):
    """Trains a tokenizer on rows of counted words: a row of `tokenizer`, the text of its
    `tokenizer.json`, per window.

    Args:
        recipe: The settings of the model's recipe, such as `vocab_size: 32000`.
        model: The model: `bpe`, `wordpiece`, `word_level`, `unigram` or `mingram`.
        normalizer: Name of the normalizer, the same as in `CountWords`.
        pretokenizer: Name of the pre-tokenizer, the same as in `CountWords`.
        weights: The weight of each source, by name; other sources have the weight 1.
        temperature: From 0 (equal shares) to 1 (the shares as they are): computes the weights.
        memory_bytes: Memory of the training worker in bytes.

    Raises:
        UsageError: An argument out of its range, rows without the fields of counted words, weights
            of rows without `source`, or a temperature of rows that do not come from `CountWords`
            or `ReadCounts`.
    """

    def __init__(
        self,
        recipe: Mapping[str, Any],
        model: str = "bpe",
        normalizer: str = "none",
        pretokenizer: str = "gpt2",
        weights: Mapping[Any, Weight] | None = None,
        temperature: Weight | None = None,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        super().__init__()
        self.weighted_by = "weights" if weights else "" if temperature is None else "temperature"
        self.learn = transforms.LearnMerges(
            _recipe_of(recipe, model),
            normalizer=normalizer,
            pretokenizer=pretokenizer,
            weights=weights,
            temperature=temperature,
            memory_bytes=memory_bytes,
        )

    def expand(self, rows: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        needs_totals = "temperature" if self.weighted_by == "temperature" else ""
        words = _word_batches(rows, "LearnMerges", needs_totals, self.weighted_by)
        return words | "Learn" >> self.learn | "ToRow" >> _to_row_of("tokenizer")


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
        sequence_length, packing, pad_token, shuffle_seed, shard_tokens: As `WriteTokens` of Python.

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
        sequence_length: int | None = None,
        packing: str | None = None,
        pad_token: str | None = None,
        shuffle_seed: int | None = None,
        shard_tokens: int | None = None,
    ) -> None:
        super().__init__()
        self.field = field
        self.write = transforms.WriteTokens(
            folder,
            tokenizer,
            shards=shards,
            format=format,
            overwrite=overwrite,
            sequence_length=sequence_length,
            packing=packing,
            pad_token=pad_token,
            shuffle_seed=shuffle_seed,
            shard_tokens=shard_tokens,
        )

    def expand(self, rows: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        _fields_with(rows, self.field)
        return (
            rows
            | "Ids" >> beam.Map(_ids, self.field).with_output_types(JsonObject)
            | "Write" >> self.write
            | "ToRow" >> _to_row_of("manifest")
        )


def _recipe_of(settings: Mapping[str, Any], model: str) -> Recipe:
    """Return the recipe of a model from plain values."""
    require_choice("model", model, tuple(_RECIPES))
    kind = _RECIPES[model]
    names = kind.__struct_fields__
    require(
        isinstance(settings, Mapping) and set(settings) <= set(names),
        f"must be a mapping with keys among {', '.join(names)}, got {settings!r}",
        "recipe",
    )
    try:
        return json_structs.convert(dict(settings), kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"recipe: {error}") from error


def _word_fields(with_places: bool, by_source: bool) -> list[tuple[str, Any]]:
    """Return the names and types of the fields of counted words."""
    names = schema_of(with_places, by_source).names
    return [(name, str if name in ("source", "word") else int) for name in names]


def _word_batches(
    rows: beam.pvalue.PCollection, transform: str, needs_totals: str = "", needs_source: str = ""
) -> beam.pvalue.PCollection:
    """Return batches of the words in rows, and the totals of the transforms that made the rows.

    Args:
        rows: The rows.
        transform: The transform that an error names.
        needs_totals: The transform or option that needs the totals; empty: none.
        needs_source: The option that needs the sources of words; empty: none.
    """
    fields = dict(_fields_of(rows, transform))
    schema = schema_of("first_document" in fields, "source" in fields)
    missing = [name for name in schema.names if name not in fields]
    if needs_source and "source" not in fields:
        raise UsageError(
            f"{needs_source} needs rows with a field source, got {', '.join(fields)}: set "
            "by_source of CountWords"
        )
    if missing:
        raise UsageError(
            f"{transform}: the rows must have the fields {', '.join(schema.names)}, got "
            f"{', '.join(fields)}"
        )
    counted = [
        output for output, _ in producers_of(rows, (transforms.CountWords, transforms.ReadCounts))
    ]
    if needs_totals and not counted:
        raise UsageError(
            f"{needs_totals} needs the totals of the documents, so the rows must come from "
            "CountWords or ReadCounts in the same pipeline"
        )
    if any(each.windowing != rows.windowing for each in counted):
        raise UsageError(
            f"{transform}: the rows must have the windows in which they were counted: set windows "
            "before CountWords"
        )
    gather = beam.ParDo(_GatherWords(schema, transform)).with_output_types(pa.RecordBatch)
    totals = [
        each | f"Totals{number}" >> beam.Filter(_has_no_rows).with_output_types(pa.RecordBatch)
        for number, each in enumerate(counted)
    ]
    words = rows | "Gather" >> gather
    return (words, *totals) | "WithTotals" >> beam.Flatten().with_output_types(pa.RecordBatch)


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
    fields = _fields_of(rows, f"field {field}")
    if field not in dict(fields):
        raise UsageError(
            f"field must be one of {', '.join(name for name, _ in fields)}, got {field}"
        )
    return fields


def _fields_of(rows: beam.pvalue.PCollection, what: str) -> list[tuple[str, Any]]:
    """Return the names and types of the rows' fields; an error begins with `what`."""
    try:
        return list(named_fields_from_element_type(rows.element_type))
    except (TypeError, ValueError):
        raise UsageError(
            f"{what}: the elements must be rows with a schema, got {rows.element_type}; "
            "convert them to rows first"
        ) from None


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


def _to_row_of(name: str) -> beam.PTransform:
    """Return the step to rows with one field of text."""
    row_type = RowTypeConstraint.from_fields([(name, str)])
    return beam.Map(_row_of, name).with_output_types(row_type)


def _row_of(value: str, name: str) -> beam.Row:
    return beam.Row(**{name: value})


@beam.typehints.with_input_types(ANY, window=ANY)
class _GatherWords(beam.DoFn):
    """Rows of counted words to batches of about `_BATCH_BYTES`."""

    def __init__(self, schema: pa.Schema, transform: str) -> None:
        self.schema = schema
        self.transform = transform

    def start_bundle(self) -> None:
        self.rows: dict[Any, list[Any]] = {}
        self.size = 0

    def process(self, row: Any, window: Any = beam.DoFn.WindowParam) -> Iterator[WindowedValue]:
        self.rows.setdefault(window, []).append(row)
        self.size += _ROW_BYTES + len(row.word or "")
        if self.size >= _BATCH_BYTES:
            yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        rows_of = self.rows
        self.start_bundle()
        for window, rows in rows_of.items():
            with data_errors(f"{self.transform}: a row has an invalid word or count"):
                columns = [
                    pa.array([getattr(row, field.name) for row in rows], field.type)
                    for field in self.schema
                ]
            batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
            yield WindowedValue(batch, window.max_timestamp(), (window,))


def _has_no_rows(batch: pa.RecordBatch) -> bool:
    return bool(batch.num_rows == 0)

"""`Tokenize`: documents in, token ids out, in the user's own pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.utils.timestamp import Timestamp

from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.formats.table_schema import TEXT_BYTES
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import elements
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.document_fn import DeadLetterTransform, Document, DocumentFn
from bpe_beam.transforms.document_order import order_of
from bpe_beam.transforms.metrics import count_tokens
from bpe_beam.transforms.text_fields import with_column_of_ids, with_ids
from bpe_beam.transforms.token_origin import (
    FINGERPRINT,
    SIZES,
    ChosenTokenizer,
    TokenizerInput,
    TokensMaker,
    encoding_display,
    tokenizer_errors,
)
from bpe_beam.workers.document_encoding import (
    AllowedSpecial,
    Encoding,
    cached_tokenizer,
    cached_under,
)


class Tokenize(DeadLetterTransform, TokensMaker):
    """Encodes documents, bounded or unbounded.

    - A `str` or `bytes` (UTF-8) becomes a `pyarrow.UInt32Array` of its ids.
    - A dict, `beam.Row` or named tuple becomes the same dict, or a `beam.Row`, with a list of ids
      in the field `tokens` in place of the text.
    - An Arrow batch or table becomes the same with a column `tokens` (large_list of uint32) in
      place of the text. Its schema has the fingerprint of the tokenizer. A batch of `ReadDocuments`
      gets a column `text_bytes` too, the size of the text in UTF-8.
    - `(key, document)` becomes the same key with the encoded document.

    Other fields and columns, such as ids, are kept, and so are windows, timestamps, panes and late
    elements. An unusable document fails the pipeline, unless `with_dead_letters` takes it out. A
    tokenizer or an update that a worker cannot read or use always fails it.

    Updates: an element is encoded with the latest update in the side input's window for that
    element. If timestamps are equal, the update with the greatest text is used. Without an update,
    `tokenizer` is used, and the counter `documents_before_update` counts these documents; if
    `tokenizer` is None, they are unusable. As with any side input, elements wait until that window
    has fired once or has ended. For updates in the global window use a trigger that fires at each
    update, and send the first tokenizer as an update too.

    Counters: `documents_tokenized`, `tokens_made`, `dead_letters`, `documents_before_update`.

    Args:
        tokenizer: The tokenizer; a path or URL that `Tokenizer.from_file` reads, which workers
            read themselves, so that the pipeline stays small; or `AsSingleton` of a collection of
            one `tokenizer.json`, such as the output of `LearnMerges`. Each process keeps one
            copy, which its workers share.
        text_field: The field or column of the text, in documents that have fields, or a path to
            one, `meta.body`, as in `ReadSettings`. The ids of a text in a record are a field at the
            top; the record loses the text.
        append: Token added after each document.
        prepend: Token added before each document.
        allowed_special: Special tokens that are recognized in the text; others are plain text.
        add_special_tokens: Whether the tokens of the tokenizer's post-processor, such as `<s>`, are
            put around each document, within `prepend` and `append`. Without it, a warning names
            these tokens.
        updates: Newer tokenizers, a PCollection or a side input of one: each is the content of a
            `tokenizer.json`, or a path or URL of one. A file that was named must not change. A
            process caches the last few tokenizers.
        storage: The client that reads tokenizers.

    Raises:
        UsageError: The tokenizer lacks a token of `append`, `prepend` or `allowed_special`, or its
            post-processor adds none (a side input and an update are checked when they are used);
            there is no tokenizer; or the elements' type lacks the text field.
    """

    def __init__(
        self,
        tokenizer: TokenizerInput | None,
        *,
        text_field: str = "text",
        append: str | None = None,
        prepend: str | None = None,
        allowed_special: AllowedSpecial = (),
        add_special_tokens: bool = False,
        updates: beam.pvalue.PCollection | beam.pvalue.AsSideInput | None = None,
        storage: Storage | None = None,
    ) -> None:
        super().__init__()
        self.storage = storage or Storage()
        chosen = ChosenTokenizer(None)
        if tokenizer is not None:
            chosen = ChosenTokenizer.of(tokenizer, self.storage)
        elif updates is None:
            raise UsageError("must be given where there are no updates, got None", ("tokenizer",))
        encoding = encoding_of(
            chosen.known,
            append=append,
            prepend=prepend,
            allowed_special=allowed_special,
            add_special_tokens=add_special_tokens,
        )
        self.encoding = chosen.travelling(encoding, self.storage)
        self.text_field = text_field
        self.updates = getattr(updates, "pvalue", updates)
        self.tokenizer = chosen if updates is None else None
        self._side_inputs = chosen.side_inputs
        self._has_tokenizer = tokenizer is not None

    def expand(self, documents: beam.pvalue.PCollection) -> Any:
        """Return the encoded documents, and the dead letters if they have an output."""
        output_type = elements.tokens_type(documents.element_type, self.text_field)
        encode = _Encode(self)
        views = {}
        if self.updates is not None:
            add_time = beam.FlatMap(_with_time).with_output_types(tuple[int, str])
            views["updates"] = beam.pvalue.AsList(self.updates | "TimeUpdates" >> add_time)
        if self._side_inputs:
            views["learned"] = self._side_inputs[0]
        step = beam.ParDo(encode, **views)
        tokens, dead = self._outputs(documents, "Encode", step, output_type)
        return self._named(tokens, dead)

    def display_data(self) -> dict[str, Any]:
        return {**encoding_display(self.encoding), "text_field": self.text_field}


def _with_time(
    update: str, timestamp: Timestamp = beam.DoFn.TimestampParam
) -> Iterator[tuple[int, str]]:
    """Yield an update with its time in microseconds, because side inputs have no timestamps."""
    yield timestamp.micros, update


class _Encode(DocumentFn):
    def __init__(self, tokenize: Tokenize) -> None:
        super().__init__(tokenize.text_field, tokenize.dead_letters)
        self.encoding = tokenize.encoding
        self.storage = tokenize.storage
        self.has_updates = tokenize.updates is not None
        self.has_tokenizer = tokenize._has_tokenizer

    def start_bundle(self) -> None:
        super().start_bundle()
        self.updates: Any = None
        self.update: str | None = None
        self.learned: str | None = None
        self._chosen: tuple[str, Tokenizer] | None = None

    def before(self, updates: list[tuple[int, str]] | None, learned: str | None) -> Iterator[Any]:
        if updates is not self.updates or learned is not self.learned:
            update = max(updates)[1] if updates else None
            if update != self.update or learned != self.learned:
                yield from self.take_waiting()
            self.updates, self.update, self.learned = updates, update, learned

    def take(self, document: Document) -> Iterator[Any]:
        try:
            elements.refuse_tokens(elements.without_key(document.element), self.text_field)
        except DataError as error:
            yield self._unusable(document, error)
        else:
            yield from super().take(document)

    def use(self, documents: list[Document], texts: pa.Array, batch: Any = None) -> Iterable[Any]:
        tokenizer = self._tokenizer()
        ids = self.encoding.encode(texts, tokenizer)
        count_tokens(ids)
        if self.has_updates and self.update is None:
            counters.counter("documents_before_update").inc(len(ids))
        if batch is not None:
            whole = _with_sizes(with_column_of_ids(batch, self.text_field, ids), texts)
            known = {**(batch.schema.metadata or {}), FINGERPRINT: tokenizer.fingerprint}
            encoded = [whole.replace_schema_metadata(known)]
        else:
            flat, bounds = ids.values, ids.offsets.to_pylist()
            encoded = [
                _with_tokens(
                    elements.without_key(document.element),
                    self.text_field,
                    flat.slice(start, end - start),
                )
                for document, start, end in zip(documents, bounds[:-1], bounds[1:], strict=True)
            ]
        return [
            document.output(elements.with_value(document.element, value))
            for document, value in zip(documents, encoded, strict=True)
        ]

    def check(self, document: Document, texts: pa.Array, batch: Any) -> None:
        self.encoding.encode(texts, self._tokenizer())

    def _tokenizer(self) -> Tokenizer:
        """Return the tokenizer for the elements that wait."""
        chosen = self.update or self.learned
        if chosen is None:
            if not self.has_tokenizer:
                raise DataError(
                    "there is no tokenizer for this document: updates has none for its window, and "
                    "Tokenize got None; send an update before, or give a tokenizer"
                )
            with tokenizer_errors():
                return self.encoding.tokenizer()
        if self._chosen is None or self._chosen[0] is not chosen:
            with tokenizer_errors():
                self._chosen = chosen, self._read(chosen)
        return self._chosen[1]

    def _read(self, chosen: str) -> Tokenizer:
        if chosen.lstrip()[:1] == "{":
            return cached_tokenizer(chosen)
        return cached_under(chosen, partial(Tokenizer.from_file, chosen, storage=self.storage))


def encoding_of(tokenizer: Tokenizer | None, **settings: Any) -> Encoding:
    """Return the encoding of a transform, by settings of `Encoding.of`, for its constructor.

    Warns the constructor's caller if the tokens of the tokenizer's post-processor are left out.
    """
    encoding = Encoding.of(tokenizer, **settings)
    if tokenizer is not None and encoding.left_out is not None:
        remedy = "set add_special_tokens=True for these, or prepend and append"
        warnings.warn(f"{encoding.left_out}: {remedy}", stacklevel=3)
    return encoding


def _with_sizes(batch: Any, texts: pa.Array) -> Any:
    """Return a batch of documents of files with the sizes of its texts; others unchanged."""
    if TEXT_BYTES in batch.schema.names or order_of(batch) is None:
        return batch
    import pyarrow.compute as pc  # slow to import

    return batch.append_column(SIZES, pc.binary_length(texts))


def _with_tokens(document: Any, text_field: str, ids: pa.UInt32Array) -> Any:
    """Return the ids of a `str` or `bytes`, or a dict or row with a list of ids for its text."""
    if elements.fields_of(document) is None:
        return ids
    return with_ids(document, text_field, ids.to_pylist())

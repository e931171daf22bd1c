"""`Tokenize`: documents in, token ids out, in the user's own pipeline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import BoundedWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfo

from bpe_beam.errors import DataError, TextError
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.dead_letters import DeadLetterTransform, dead_letter, in_window
from bpe_beam.transforms.elements import (
    ANY,
    Element,
    batch_with_tokens,
    document_utf8,
    has_texts,
    is_batch,
    string_array,
    text_column,
    tokens_type,
    with_tokens,
    with_value,
    without_key,
)
from bpe_beam.workers import metric_names
from bpe_beam.workers.document_encoding import (
    AllowedSpecial,
    Encoding,
    cached_tokenizer,
    cached_under,
)

GATHERED_DOCUMENTS = 1024
GATHERED_BYTES = 1 << 20
GATHERED_SECONDS = 0.1
"""Single documents of a bundle wait for each other, until one of these limits is reached or the
bundle ends. Encoding documents one at a time takes about 90 µs each, a thousand together 3 µs each
(documents of 60 characters, one core)."""


class Tokenize(DeadLetterTransform):
    """Encodes documents, bounded or unbounded.

    - A `str` or `bytes` (UTF-8) becomes a `pyarrow.UInt32Array` of its ids.
    - A dict, `beam.Row` or named tuple becomes the same dict, or a `beam.Row`, with a list of ids
      in the field `tokens` in place of the text.
    - An Arrow batch or table becomes the same with a column `tokens` (large_list of uint32) in
      place of the text.
    - `(key, document)` becomes the same key with the encoded document.

    Other fields and columns, such as ids, are kept, and so are windows, timestamps, panes and late
    elements. A document that cannot be used fails the pipeline, unless `with_dead_letters` takes
    it out.

    Updates: when an element is processed, the updates in the side input's window for it are
    compared. The one with the greatest timestamp encodes the element; of equal timestamps, the one
    with the greatest text. If there is none, `tokenizer` encodes it. As with any side input,
    elements wait until that window has fired once or has ended. For updates in the global window
    use a trigger that fires at each update, and send the first tokenizer as an update too.

    Args:
        tokenizer: The tokenizer; cached once a process, however many workers encode there.
        text_field: The field or column of the text, in documents that have fields.
        append: Token added after each document.
        prepend: Token added before each document.
        allowed_special: Special tokens that are recognized in the text; others are plain text.
        updates: A PCollection of newer tokenizers: texts of a `tokenizer.json`, or its paths or
            URLs. The file of a URL must not change. A process caches the last few tokenizers.
        storage: The client that reads the URLs of updates.

    Raises:
        UsageError: A token that the tokenizer does not have (for an update, when it is used);
            elements that are known to have no such field.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        text_field: str = "text",
        append: str | None = None,
        prepend: str | None = None,
        allowed_special: AllowedSpecial = (),
        updates: beam.pvalue.PCollection | None = None,
        storage: Storage | None = None,
    ) -> None:
        super().__init__()
        self.encoding = Encoding.of(
            tokenizer, append=append, prepend=prepend, allowed_special=allowed_special
        )
        self.text_field = text_field
        self.updates = updates
        self.storage = storage or Storage()

    def expand(self, documents: beam.pvalue.PCollection) -> Any:
        """Return the encoded documents, and the dead letters if they have an output."""
        output_type = tokens_type(documents.element_type, self.text_field)
        encode = _Encode(self.encoding, self.storage, self.text_field, self.dead_letters)
        updates = []
        if self.updates is not None:
            timed = self.updates | "TimeUpdates" >> beam.ParDo(_AddTimestamp())
            updates.append(beam.pvalue.AsList(timed))
        step = beam.ParDo(encode, *updates)
        tokens, dead = self._outputs(documents, "Encode", step, output_type)
        return tokens if dead is None else (tokens, dead)


@beam.typehints.with_input_types(str, timestamp=ANY)
@beam.typehints.with_output_types(tuple[int, str])
class _AddTimestamp(beam.DoFn):
    """Updates to pairs of timestamp in microseconds and update: a side input has no timestamps."""

    def process(
        self, update: str, timestamp: Timestamp = beam.DoFn.TimestampParam
    ) -> Iterator[tuple[int, str]]:
        """Return one update with its timestamp."""
        yield timestamp.micros, update


class _WaitingDocument(NamedTuple):
    """A document that waits to be encoded with others."""

    element: Element
    utf8: bytes
    timestamp: Timestamp
    window: BoundedWindow
    pane: PaneInfo


# Beam's checks cannot read annotations that are strings, so the parameters' types are given here.
@beam.typehints.with_input_types(Element, timestamp=ANY, window=ANY, pane=ANY, updates=ANY)
class _Encode(beam.DoFn):
    """Documents to their ids: single documents in groups, Arrow batches one by one."""

    def __init__(
        self, encoding: Encoding, storage: Storage, text_field: str, dead_letters: bool
    ) -> None:
        self.encoding = encoding
        self.storage = storage
        self.text_field = text_field
        self.dead_letters = dead_letters

    def start_bundle(self) -> None:
        """Begin without documents: those of a failed bundle are sent again."""
        self.waiting: list[_WaitingDocument] = []
        self.waiting_bytes = 0
        self.since = 0.0
        self.updates: Any = None
        self.update: str | None = None

    def process(
        self,
        element: Element,
        timestamp: Timestamp = beam.DoFn.TimestampParam,
        window: BoundedWindow = beam.DoFn.WindowParam,
        pane: PaneInfo = beam.DoFn.PaneInfoParam,
        updates: list[tuple[int, str]] | None = None,
    ) -> Iterator[Any]:
        """Add a document to those that wait, or encode a batch."""
        if updates is not self.updates:
            update = max(updates)[1] if updates else None
            if update != self.update:
                yield from self.finish_bundle()
            self.updates, self.update = updates, update
        value = without_key(element)
        if is_batch(value):
            for each in self._encode_batch(element, value):
                yield in_window(each, timestamp, window, pane)
            return
        if not self.waiting:
            self.since = time.monotonic()
        try:
            utf8 = document_utf8(value, self.text_field)
        except DataError as error:
            yield in_window(self._dead(element, error), timestamp, window, pane)
            return
        self.waiting.append(_WaitingDocument(element, utf8, timestamp, window, pane))
        self.waiting_bytes += len(utf8)
        if (
            len(self.waiting) >= GATHERED_DOCUMENTS
            or self.waiting_bytes >= GATHERED_BYTES
            or time.monotonic() - self.since >= GATHERED_SECONDS
        ):
            yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[Any]:
        """Encode the waiting documents."""
        waiting, self.waiting = self.waiting, []
        self.waiting_bytes = 0
        if not waiting:
            return
        try:
            ids = self._encode(string_array([each.utf8 for each in waiting]))
        except DataError:
            if not self.dead_letters:
                raise
            for each in waiting:  # one of them cannot be encoded: find out which
                output = self._encode_alone(each)
                yield in_window(output, each.timestamp, each.window, each.pane)
            return
        flat, offsets = ids.values, ids.offsets.to_pylist()
        for i, each in enumerate(waiting):
            tokens = flat.slice(offsets[i], offsets[i + 1] - offsets[i])
            output = self._output_of(each.element, tokens)
            yield in_window(output, each.timestamp, each.window, each.pane)

    def _encode_alone(self, each: _WaitingDocument) -> Any:
        try:
            tokens = self._encode(string_array([each.utf8])).values
        except DataError as error:
            return self._dead(each.element, error)
        return self._output_of(each.element, tokens)

    def _output_of(self, element: Element, tokens: pa.UInt32Array) -> Any:
        try:
            encoded = with_tokens(without_key(element), self.text_field, tokens)
        except DataError as error:
            return self._dead(element, error)
        return with_value(element, encoded)

    def _encode_batch(self, element: Element, batch: Any) -> Iterator[Any]:
        """Yield the batch with its tokens, and each unusable row by itself."""
        try:
            ids = self._encode(text_column(batch, self.text_field))
            encoded = batch_with_tokens(batch, self.text_field, ids)
        except DataError as error:
            if not (self.dead_letters and has_texts(batch, self.text_field)):
                yield self._dead(element, error)
                return
            good = []
            for number in range(batch.num_rows):
                row = batch.slice(number, 1)
                try:
                    self._ids(text_column(row, self.text_field))
                    good.append(number)
                except DataError as row_error:
                    yield self._dead(with_value(element, row), row_error)
            if len(good) == batch.num_rows:
                yield self._dead(element, error)
            elif good:
                yield from self._encode_batch(element, batch.take(good))
            return
        yield with_value(element, encoded)

    def _dead(self, element: Element, error: DataError) -> beam.pvalue.TaggedOutput:
        if not self.dead_letters:
            raise error
        return dead_letter(element, error)

    def _ids(self, texts: pa.Array) -> pa.LargeListArray:
        try:
            return self.encoding.encode(texts, self._updated())
        except TextError as error:
            raise DataError(f"a document cannot be encoded: {error.reason}") from None

    def _encode(self, texts: pa.Array) -> pa.LargeListArray:
        ids = self._ids(texts)
        counters.counter(metric_names.DOCUMENTS_TOKENIZED).inc(len(ids))
        counters.counter(metric_names.TOKENS_MADE).inc(len(ids.flatten()))
        return ids

    def _updated(self) -> Tokenizer | None:
        """Return the tokenizer of the current update; None without an update."""
        update = self.update
        if update is None:
            return None
        if update.lstrip()[:1] == "{":
            return cached_tokenizer(update)
        return cached_under(update, lambda: Tokenizer.from_file(update, storage=self.storage))

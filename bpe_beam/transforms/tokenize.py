"""`Tokenize`: documents in, token ids out, in the user's own pipeline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import BoundedWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfo, WindowedValue

from bpe_beam.errors import DataError, TextError
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.elements import (
    DEAD,
    Element,
    array_of,
    batch_with_tokens,
    document_utf8,
    has_texts,
    is_batch,
    text_column,
    tokens_type,
    with_tokens,
    with_value,
    without_key,
)
from bpe_beam.workers import metric_names as measures
from bpe_beam.workers.document_encoding import AllowedSpecial, Encoding, held_tokenizer, held_under

ANY = beam.typehints.Any

GATHERED_DOCUMENTS = 1024
GATHERED_BYTES = 1 << 20
GATHERED_SECONDS = 0.1
"""Single documents wait for others of their bundle until there are so many, so long ones, or the
first has waited for so long; at the latest until the bundle ends. Encoding them one at a time takes
some 90 µs each, a thousand together 3 µs each (documents of 60 characters, one core)."""


class Tokenize(beam.PTransform):
    """Encodes documents, bounded or unbounded.

    - A `str` or `bytes` (UTF-8) becomes a `pyarrow.UInt32Array` of its ids.
    - A dict, `beam.Row` or named tuple becomes the same dict, or a `beam.Row`, with a list of ids
      in the field `tokens` in place of the text.
    - An Arrow batch or table becomes the same with a column `tokens` (large_list of uint32) in
      place of the text.
    - `(key, any of these)` becomes the key and what any of these becomes.

    Other fields and columns, such as ids, stay, and so do windows, timestamps, panes and late
    elements. A document that cannot be used fails the pipeline, unless `with_dead_letters` takes
    it out.

    Updates: an element is encoded by the update with the greatest timestamp of those that the side
    input's window for it holds when the element is processed; of equal times, by the greatest
    text. While it holds none, by `tokenizer`. As with any side input, elements wait until that
    window has fired once or is over: for updates in the global window use a trigger that fires at
    each, and begin with the tokenizer that counts at the start.

    Args:
        tokenizer: The tokenizer; held once a process, however many workers encode there.
        text_field: The field or column of the text, in documents that have fields.
        append: Token put after each document.
        prepend: Token put before each document.
        allowed_special: Special tokens that count as such in the text; the others are plain text.
        updates: A PCollection of newer tokenizers: texts of a `tokenizer.json`, or its paths or
            URLs. What stands under a URL must not change. A process holds the last few.
        storage: How storage is reached, for the URLs of updates.

    Raises:
        UsageError: A token that the tokenizer does not have, of an update when it is used;
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
        self.dead_letters = False

    def with_dead_letters(self) -> Tokenize:
        """Return the same transform with a second output, for documents that cannot be used.

        `tokens, dead = documents | Tokenize(tokenizer).with_dead_letters()`: `dead` holds
        `(element, reason)`; of an Arrow batch only the rows that cannot be used, each as a batch.
        """
        transform = copy(self)
        transform.dead_letters = True
        return transform

    def expand(self, documents: beam.pvalue.PCollection) -> Any:
        """Encode; the output's type follows from the input's."""
        made = tokens_type(documents.element_type, self.text_field)
        encode = _Encode(self.encoding, self.storage, self.text_field, self.dead_letters)
        updates = []
        if self.updates is not None:
            timed = self.updates | "TimeUpdates" >> beam.ParDo(_TimeUpdate())
            updates.append(beam.pvalue.AsList(timed))
        step = beam.ParDo(encode, *updates)
        if not self.dead_letters:
            return documents | "Encode" >> step.with_output_types(made)
        letters = beam.typehints.Tuple[documents.element_type, str]
        outputs = documents | "Encode" >> step.with_output_types(
            made, **{DEAD: letters}
        ).with_outputs(DEAD, main="tokens")
        return outputs["tokens"], outputs[DEAD]


@beam.typehints.with_input_types(str, timestamp=ANY)
@beam.typehints.with_output_types(tuple[int, str])
class _TimeUpdate(beam.DoFn):
    """An update with its timestamp in microseconds: a side input has none."""

    def process(
        self, update: str, timestamp: Timestamp = beam.DoFn.TimestampParam
    ) -> Iterator[tuple[int, str]]:
        """One update."""
        yield timestamp.micros, update


class _Waiting(NamedTuple):
    """A document that waits for others, and where it belongs."""

    element: Element
    utf8: bytes
    timestamp: Timestamp
    window: BoundedWindow
    pane: PaneInfo


# Beam's checks cannot read annotations that are strings: those of the parameters are told to it.
@beam.typehints.with_input_types(Element, timestamp=ANY, window=ANY, pane=ANY, updates=ANY)
class _Encode(beam.DoFn):
    """Documents to their ids: single ones gathered, batches as they come."""

    def __init__(
        self, encoding: Encoding, storage: Storage, text_field: str, dead_letters: bool
    ) -> None:
        self.encoding = encoding
        self.storage = storage
        self.text_field = text_field
        self.dead_letters = dead_letters

    def start_bundle(self) -> None:
        """Begin with nothing: what a failed bundle gathered comes again."""
        self.waiting: list[_Waiting] = []
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
        """Take a document, or encode a batch of them."""
        if updates is not self.updates:
            update = max(updates)[1] if updates else None
            if update != self.update:
                yield from self.finish_bundle()
            self.updates, self.update = updates, update
        value = without_key(element)
        if is_batch(value):
            for each in self._encode_batch(element, value):
                yield _placed(each, timestamp, (window,), pane)
            return
        if not self.waiting:
            self.since = time.monotonic()
        try:
            utf8 = document_utf8(value, self.text_field)
        except DataError as error:
            yield _placed(self._dead(element, error), timestamp, (window,), pane)
            return
        self.waiting.append(_Waiting(element, utf8, timestamp, window, pane))
        self.waiting_bytes += len(utf8)
        if (
            len(self.waiting) >= GATHERED_DOCUMENTS
            or self.waiting_bytes >= GATHERED_BYTES
            or time.monotonic() - self.since >= GATHERED_SECONDS
        ):
            yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[Any]:
        """Encode the documents that wait."""
        waiting, self.waiting = self.waiting, []
        self.waiting_bytes = 0
        if not waiting:
            return
        try:
            ids = self._encode(array_of([each.utf8 for each in waiting]))
        except DataError:
            if not self.dead_letters:
                raise
            for each in waiting:  # one of them cannot be encoded: find out which
                made = self._encode_alone(each)
                yield _placed(made, each.timestamp, (each.window,), each.pane)
            return
        flat, offsets = ids.values, ids.offsets.to_pylist()
        for i, each in enumerate(waiting):
            tokens = flat.slice(offsets[i], offsets[i + 1] - offsets[i])
            made = self._made_of(each.element, tokens)
            yield _placed(made, each.timestamp, (each.window,), each.pane)

    def _encode_alone(self, each: _Waiting) -> Any:
        try:
            tokens = self._encode(array_of([each.utf8])).values
        except DataError as error:
            return self._dead(each.element, error)
        return self._made_of(each.element, tokens)

    def _made_of(self, element: Element, tokens: pa.UInt32Array) -> Any:
        try:
            made = with_tokens(without_key(element), self.text_field, tokens)
        except DataError as error:
            return self._dead(element, error)
        return with_value(element, made)

    def _encode_batch(self, element: Element, batch: Any) -> Iterator[Any]:
        """Yield the batch with its tokens, and, one by one, its rows that cannot be used."""
        try:
            ids = self._encode(text_column(batch, self.text_field))
            made = batch_with_tokens(batch, self.text_field, ids)
        except DataError as error:
            if not (self.dead_letters and has_texts(batch, self.text_field)):
                yield self._dead(element, error)
                return
            good = []
            for row in range(batch.num_rows):
                one = batch.slice(row, 1)
                try:
                    self._ids(text_column(one, self.text_field))
                    good.append(row)
                except DataError as flaw:
                    yield self._dead(with_value(element, one), flaw)
            if len(good) == batch.num_rows:
                yield self._dead(element, error)
            elif good:
                yield from self._encode_batch(element, batch.take(good))
            return
        yield with_value(element, made)

    def _dead(self, element: Element, error: DataError) -> beam.pvalue.TaggedOutput:
        if not self.dead_letters:
            raise error
        counters.counter(measures.DEAD_LETTERS).inc()
        return beam.pvalue.TaggedOutput(DEAD, (element, str(error)))

    def _ids(self, texts: pa.Array) -> pa.LargeListArray:
        try:
            return self.encoding.encode(texts, self._updated())
        except TextError as error:
            raise DataError(f"a document cannot be encoded: {error.reason}") from None

    def _encode(self, texts: pa.Array) -> pa.LargeListArray:
        ids = self._ids(texts)
        counters.counter(measures.DOCUMENTS_TOKENIZED).inc(len(ids))
        counters.counter(measures.TOKENS_MADE).inc(len(ids.flatten()))
        return ids

    def _updated(self) -> Tokenizer | None:
        """The tokenizer that the present update names."""
        update = self.update
        if update is None:
            return None
        if update.lstrip()[:1] == "{":
            return held_tokenizer(update)
        return held_under(update, lambda: Tokenizer.from_file(update, storage=self.storage))


def _placed(
    made: Any, timestamp: Timestamp, windows: tuple[BoundedWindow, ...], pane: PaneInfo
) -> Any:
    """Put an output, tagged or not, where the document was."""
    if isinstance(made, beam.pvalue.TaggedOutput):
        placed = WindowedValue(made.value, timestamp, windows, pane)
        return beam.pvalue.TaggedOutput(made.tag, placed)
    return WindowedValue(made, timestamp, windows, pane)

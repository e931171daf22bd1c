"""`Tokenize`: documents in, token ids out, in the user's own pipeline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import BoundedWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfo, WindowedValue

from bpe_beam.errors import DataError, TextError
from bpe_beam.splits import measures
from bpe_beam.splits.encoding import AllowedSpecial, Encoding, held_tokenizer, held_under
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import counters
from bpe_beam.transforms.texts import Element, array_of, text_column, utf8_of

ANY = beam.typehints.Any

GATHERED_DOCUMENTS = 1024
GATHERED_BYTES = 1 << 20
GATHERED_SECONDS = 0.1
"""Single documents wait for others of their bundle until there are so many, so long ones, or the
first has waited for so long; at the latest until the bundle ends. Encoding them one at a time takes
some 90 µs each, a thousand together 3 µs each (documents of 60 characters, one core)."""


class Tokenize(beam.PTransform):
    """Encodes documents, bounded or unbounded.

    A `str` or `bytes` (UTF-8) becomes a `pyarrow.UInt32Array` of its ids. An Arrow batch with a
    column `text` becomes the same batch with a column `tokens` (large_list of uint32) in its
    place. Windows, timestamps and panes stay as they are, and so do late elements.

    Updates: an element is encoded by the update with the greatest timestamp of those that the side
    input's window for it holds when the element is processed; of equal times, by the greatest
    text. While it holds none, by `tokenizer`. As with any side input, elements wait until that
    window has fired once or is over: for updates in the global window use a trigger that fires at
    each, and begin with the tokenizer that counts at the start.

    Args:
        tokenizer: The tokenizer; held once a process, however many workers encode there.
        append: Token put after each document.
        prepend: Token put before each document.
        allowed_special: Special tokens that count as such in the text; the others are plain text.
        updates: A PCollection of newer tokenizers: texts of a `tokenizer.json`, or its paths or
            URLs. What stands under a URL must not change. A process holds the last few.
        storage: How storage is reached, for the URLs of updates.

    Raises:
        UsageError: A token that the tokenizer does not have; of an update, when it is used.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
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
        self.updates = updates
        self.storage = storage or Storage()

    def expand(self, documents: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Wires the steps; the output's type follows from the input's."""
        batches = documents.element_type is pa.RecordBatch
        made = pa.RecordBatch if batches else pa.UInt32Array
        encode = _Encode(self.encoding, self.storage)
        if self.updates is None:
            return documents | "Encode" >> beam.ParDo(encode).with_output_types(made)
        timed = self.updates | "TimeUpdates" >> beam.ParDo(_TimeUpdate())
        return documents | "Encode" >> beam.ParDo(
            encode, beam.pvalue.AsList(timed)
        ).with_output_types(made)


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

    utf8: bytes
    timestamp: Timestamp
    window: BoundedWindow
    pane: PaneInfo


# Beam's checks cannot read annotations that are strings: those of the parameters are told to it.
@beam.typehints.with_input_types(Element, timestamp=ANY, window=ANY, pane=ANY, updates=ANY)
@beam.typehints.with_output_types(pa.UInt32Array | pa.RecordBatch)
class _Encode(beam.DoFn):
    """Documents to their ids: single ones gathered, batches as they come."""

    def __init__(self, encoding: Encoding, storage: Storage) -> None:
        self.encoding = encoding
        self.storage = storage

    def start_bundle(self) -> None:
        """Begins with nothing: what a failed bundle gathered comes again."""
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
    ) -> Iterator[WindowedValue]:
        """Takes a document, or encodes a batch of them."""
        if updates is not self.updates:
            update = max(updates)[1] if updates else None
            if update != self.update:
                yield from self.finish_bundle()
            self.updates, self.update = updates, update
        if isinstance(element, pa.RecordBatch):
            ids = self._encode(text_column(element))
            place = element.schema.get_field_index("text")
            made = element.remove_column(place).add_column(place, "tokens", ids)
            yield WindowedValue(made, timestamp, (window,), pane)
            return
        if not self.waiting:
            self.since = time.monotonic()
        self.waiting.append(_Waiting(utf8_of(element), timestamp, window, pane))
        self.waiting_bytes += len(self.waiting[-1].utf8)
        if (
            len(self.waiting) >= GATHERED_DOCUMENTS
            or self.waiting_bytes >= GATHERED_BYTES
            or time.monotonic() - self.since >= GATHERED_SECONDS
        ):
            yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Encodes what waits."""
        waiting, self.waiting = self.waiting, []
        self.waiting_bytes = 0
        if not waiting:
            return
        ids = self._encode(array_of([each.utf8 for each in waiting]))
        flat, offsets = ids.values, ids.offsets.to_pylist()
        for i, each in enumerate(waiting):
            tokens = flat.slice(offsets[i], offsets[i + 1] - offsets[i])
            yield WindowedValue(tokens, each.timestamp, (each.window,), each.pane)

    def _encode(self, texts: pa.Array) -> pa.LargeListArray:
        try:
            ids = self.encoding.encode(texts, self._updated())
        except TextError as error:
            raise DataError(f"a document cannot be encoded: {error.reason}") from None
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

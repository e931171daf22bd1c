"""The base of `CountWords` and `Tokenize`: documents of every kind to texts, and dead letters."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator
from copy import copy
from typing import Any, NamedTuple, TypeVar

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import BoundedWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfo, WindowedValue

from bpe_beam.errors import DataError
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.elements import (
    ANY,
    Element,
    document_utf8,
    has_texts,
    is_batch,
    string_array,
    text_column,
    with_value,
    without_key,
)
from bpe_beam.transforms.shuffles import outputs_of

DEAD, MAIN = "dead", "main"
"""The tags of the outputs of a step with dead letters."""

T = TypeVar("T", bound="DeadLetterTransform")

GATHERED_DOCUMENTS = 1024
GATHERED_BYTES = 1 << 20
GATHERED_SECONDS = 0.1
"""Limits within which single documents of a bundle wait for each other. Encoding documents one at a
time takes about 90 µs each, a thousand together 3 µs each (documents of 60 characters, one
core)."""


class Document(NamedTuple):
    """An element, with its timestamp, window and pane."""

    element: Element
    timestamp: Timestamp
    window: BoundedWindow
    pane: PaneInfo

    def output(self, value: Any) -> WindowedValue:
        return WindowedValue(value, self.timestamp, (self.window,), self.pane)


class NamedOutputs(dict[str, beam.pvalue.PCollection]):
    """The outputs of a transform: `outputs["good"]` or `outputs.good`."""

    def __getattr__(self, tag: str) -> beam.pvalue.PCollection:
        try:
            return self[tag]
        except KeyError:
            raise AttributeError(f"no output {tag!r}, only {', '.join(self)}") from None


def _with_exception(element: Element, reason: str) -> tuple[Element, tuple[type, str, list[str]]]:
    return element, (DataError, reason, [])


class DeadLetterTransform(beam.PTransform):
    """A transform with an optional second output for unusable documents."""

    dead_letters = False
    _tags: tuple[str, str] | None = None
    _error_handler: Any = None

    def with_dead_letters(self: T) -> T:
        """Return the same transform with a second output, for unusable documents.

        `good, dead = documents | Transform().with_dead_letters()`: `dead` contains pairs
        `(element, reason)`. Only the unusable rows of an Arrow batch are taken out, each as a batch
        of one row.
        """
        transform = copy(self)
        transform.dead_letters = True
        return transform

    def with_exception_handling(
        self: T, main_tag: str = "good", dead_letter_tag: str = "bad", *, error_handler: Any = None
    ) -> T:
        """Return the same transform with named outputs, as Beam's own `with_exception_handling`.

        `outputs = documents | Transform().with_exception_handling()`: `outputs.good` has what the
        transform returns, and `outputs.bad` has `(element, (type, reason, traceback))` for each
        unusable document. With an `error_handler` of Beam, that gets them, and the output is what
        the transform returns.
        """
        transform = self.with_dead_letters()
        transform._tags = main_tag, dead_letter_tag
        transform._error_handler = error_handler
        return transform

    def with_error_handler(self: T, error_handler: Any, **tags: str) -> T:
        """Return `with_exception_handling(error_handler=error_handler)`."""
        return self.with_exception_handling(error_handler=error_handler, **tags)

    def _named(self, outputs: beam.pvalue.PCollection, dead: beam.pvalue.PCollection | None) -> Any:
        """Return the outputs of `expand`: one, a pair, or by name."""
        if dead is None:
            return outputs
        if self._tags is None:
            return outputs, dead
        failure = beam.typehints.Tuple[type, str, beam.typehints.List[str]]
        hint = beam.typehints.Tuple[dead.element_type.tuple_types[0], failure]
        errors = dead | "AsExceptions" >> beam.MapTuple(_with_exception).with_output_types(hint)
        if self._error_handler is not None:
            self._error_handler.add_error_pcollection(errors)
            return outputs
        return NamedOutputs(zip(self._tags, (outputs, errors), strict=True))

    def _outputs(
        self,
        documents: beam.pvalue.PCollection,
        label: str,
        step: beam.ParDo,
        output_type: Any,
    ) -> tuple[beam.pvalue.PCollection, beam.pvalue.PCollection | None]:
        """Return the step's main output, and its dead letters, or None without `dead_letters`."""
        if not self.dead_letters:
            return documents | label >> step.with_output_types(output_type), None
        letter = beam.typehints.Tuple[documents.element_type, str]
        outputs = outputs_of(documents, label, step, {MAIN: output_type, DEAD: letter})
        return outputs[MAIN], outputs[DEAD]


# Beam's checks cannot read annotations that are strings, so the parameters' types are named here.
@beam.typehints.with_input_types(
    Element, timestamp=ANY, window=ANY, pane=ANY, updates=ANY, learned=ANY
)
class DocumentFn(beam.DoFn):
    """A step that takes documents: single documents together, Arrow batches one by one.

    Subclasses use the texts; this class separates unusable documents.
    """

    by_window = False  # whether only documents of one window are used together

    def __init__(self, text_field: str, dead_letters: bool) -> None:
        self.text_field = text_field
        self.dead_letters = dead_letters

    def use(self, documents: list[Document], texts: pa.Array, batch: Any = None) -> Iterable[Any]:
        """Use texts, all or none, and return the outputs."""
        raise NotImplementedError

    def check(self, document: Document, texts: pa.Array, batch: Any) -> None:
        """Raise the error with which `use` would refuse these texts of a document, if it would."""
        raise NotImplementedError

    def start_bundle(self) -> None:
        """Begin without documents: documents of a failed bundle are sent again."""
        self._waiting: list[tuple[Document, bytes]] = []
        self._waiting_bytes = 0
        self._since = 0.0

    def before(self, updates: Any, learned: Any) -> Iterator[Any]:
        """Prepare for an element by the side inputs of its window, if any; yield outputs."""
        yield from ()

    def process(
        self,
        element: Element,
        timestamp: Timestamp = beam.DoFn.TimestampParam,
        window: BoundedWindow = beam.DoFn.WindowParam,
        pane: PaneInfo = beam.DoFn.PaneInfoParam,
        updates: Any = None,
        learned: Any = None,
    ) -> Iterator[Any]:
        yield from self.before(updates, learned)
        yield from self.take(Document(element, timestamp, window, pane))

    def finish_bundle(self) -> Iterator[Any]:
        yield from self.take_waiting()

    def take(self, document: Document) -> Iterator[Any]:
        """Add a single document to the waiting documents, or use a batch; yield outputs."""
        value = without_key(document.element)
        if is_batch(value):
            yield from self._take_batch(document, value)
            return
        try:
            utf8 = document_utf8(value, self.text_field)
        except DataError as error:
            yield self._unusable(document, error)
            return
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append((document, utf8))
        self._waiting_bytes += len(utf8)
        if (
            len(self._waiting) >= GATHERED_DOCUMENTS
            or self._waiting_bytes >= GATHERED_BYTES
            or time.monotonic() - self._since >= GATHERED_SECONDS
        ):
            yield from self.take_waiting()

    def take_waiting(self) -> Iterator[Any]:
        """Use the waiting documents; yield outputs."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        windows: dict[Hashable, list[tuple[Document, bytes]]] = {}
        for each in waiting:
            windows.setdefault(each[0].window if self.by_window else None, []).append(each)
        for together in windows.values():
            yield from self._take_together(together)

    def _unusable(self, document: Document, error: DataError) -> beam.pvalue.TaggedOutput:
        """Return and count a document for the second output; without one, raise the error."""
        if not self.dead_letters:
            raise error
        counters.counter("dead_letters").inc()
        return beam.pvalue.TaggedOutput(DEAD, document.output((document.element, str(error))))

    def _take_together(self, waiting: list[tuple[Document, bytes]]) -> Iterator[Any]:
        documents = [document for document, _ in waiting]
        try:
            outputs = self.use(documents, string_array([utf8 for _, utf8 in waiting]))
        except DataError as error:
            if len(waiting) == 1 or not self.dead_letters:
                yield self._unusable(documents[0], error)
                return
            for each in waiting:  # one of them is unusable
                yield from self._take_together([each])
            return
        yield from outputs

    def _take_batch(self, document: Document, batch: Any) -> Iterator[Any]:
        """Use a batch, or the usable rows of an unusable batch, together."""
        try:
            outputs = self.use([document], text_column(batch, self.text_field), batch)
        except DataError as error:
            if not (self.dead_letters and has_texts(batch, self.text_field)):
                yield self._unusable(document, error)
                return
            good = []
            for number in range(batch.num_rows):
                row = batch.slice(number, 1)
                try:
                    self.check(document, text_column(row, self.text_field), row)
                    good.append(number)
                except DataError as row_error:
                    alone = document._replace(element=with_value(document.element, row))
                    yield self._unusable(alone, row_error)
            if len(good) == batch.num_rows:
                yield self._unusable(document, error)
            elif good:
                yield from self._take_batch(document, batch.take(good))
            return
        yield from outputs

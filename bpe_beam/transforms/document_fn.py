"""`DocumentFn`: documents of every kind to texts, for the steps of `CountWords` and `Tokenize`."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import BoundedWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfo, WindowedValue

from bpe_beam.errors import DataError
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.dead_letters import DEAD
from bpe_beam.transforms.elements import (
    Element,
    document_utf8,
    has_texts,
    is_batch,
    string_array,
    with_value,
    without_key,
)
from bpe_beam.workers import metric_names

GATHERED_DOCUMENTS = 1024
GATHERED_BYTES = 1 << 20
GATHERED_SECONDS = 0.1
"""Single documents of a bundle wait for each other, until one of these limits is reached or the
bundle ends. Encoding documents one at a time takes about 90 µs each, a thousand together 3 µs each
(documents of 60 characters, one core)."""


class Document(NamedTuple):
    """An element, and what Beam knows of it."""

    element: Element
    timestamp: Timestamp
    window: BoundedWindow
    pane: PaneInfo

    def output(self, value: Any) -> WindowedValue:
        """Return a value with the timestamp, window and pane of the element."""
        return WindowedValue(value, self.timestamp, (self.window,), self.pane)


class _Waiting(NamedTuple):
    """A single document that waits for others."""

    document: Document
    utf8: bytes


class DocumentFn(beam.DoFn):
    """A step that takes documents: single ones in groups, Arrow batches one by one.

    Subclasses define what is done with texts; this class finds the documents that cannot be used.

    Args:
        text_field: The field or column of the text, in documents that have fields.
        dead_letters: Whether unusable documents go to the second output; else they fail the step.
    """

    def __init__(self, text_field: str, dead_letters: bool) -> None:
        self.text_field = text_field
        self.dead_letters = dead_letters

    def use_texts(self, documents: list[Document], texts: pa.Array) -> Iterable[Any]:
        """Use the texts of single documents of one group, all or none.

        Args:
            documents: The documents.
            texts: Their texts, large_string.

        Returns:
            The outputs.

        Raises:
            DataError: One of the texts cannot be used.
        """
        raise NotImplementedError

    def use_batch(self, document: Document, batch: Any) -> Iterable[Any]:
        """Use the texts of an Arrow batch or table, all or none.

        Args:
            document: The element.
            batch: The batch, without the key of the element.

        Returns:
            The outputs.

        Raises:
            DataError: One of the texts cannot be used.
        """
        raise NotImplementedError

    def check_batch(self, batch: Any) -> None:
        """Check that `use_batch` can use a batch.

        Raises:
            DataError: One of the texts cannot be used.
        """
        raise NotImplementedError

    def group_of(self, document: Document) -> Hashable:
        """Return the group of a document: only documents of one group are used together."""
        return None

    def start_bundle(self) -> None:
        """Begin without documents: those of a failed bundle are sent again."""
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = 0
        self._since = 0.0

    def take(self, document: Document) -> Iterator[Any]:
        """Add a single document to those that wait, or use a batch; yield outputs."""
        value = without_key(document.element)
        if is_batch(value):
            yield from self._take_batch(document, value)
            return
        try:
            utf8 = document_utf8(value, self.text_field)
        except DataError as error:
            yield self.unusable(document, error)
            return
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(_Waiting(document, utf8))
        self._waiting_bytes += len(utf8)
        if (
            len(self._waiting) >= GATHERED_DOCUMENTS
            or self._waiting_bytes >= GATHERED_BYTES
            or time.monotonic() - self._since >= GATHERED_SECONDS
        ):
            yield from self.take_waiting()

    def take_waiting(self) -> Iterator[Any]:
        """Use the documents that wait; yield outputs."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        groups: dict[Hashable, list[_Waiting]] = {}
        for each in waiting:
            groups.setdefault(self.group_of(each.document), []).append(each)
        for group in groups.values():
            yield from self._take_group(group)

    def unusable(self, document: Document, error: DataError) -> beam.pvalue.TaggedOutput:
        """Return an unusable document for the second output, and count it.

        Args:
            document: The document.
            error: Why it cannot be used.

        Raises:
            DataError: The error itself, without a second output.
        """
        if not self.dead_letters:
            raise error
        counters.counter(metric_names.DEAD_LETTERS).inc()
        return beam.pvalue.TaggedOutput(DEAD, document.output((document.element, str(error))))

    def _take_group(self, group: list[_Waiting]) -> Iterator[Any]:
        documents = [each.document for each in group]
        try:
            outputs = self.use_texts(documents, string_array([each.utf8 for each in group]))
        except DataError as error:
            if len(group) == 1 or not self.dead_letters:
                yield self.unusable(documents[0], error)
                return
            for each in group:  # one of them cannot be used: find out which
                yield from self._take_group([each])
            return
        yield from outputs

    def _take_batch(self, document: Document, batch: Any) -> Iterator[Any]:
        """Use a batch; of an unusable batch the usable rows, together."""
        try:
            outputs = self.use_batch(document, batch)
        except DataError as error:
            if not (self.dead_letters and has_texts(batch, self.text_field)):
                yield self.unusable(document, error)
                return
            good = []
            for number in range(batch.num_rows):
                row = batch.slice(number, 1)
                try:
                    self.check_batch(row)
                    good.append(number)
                except DataError as row_error:
                    alone = document._replace(element=with_value(document.element, row))
                    yield self.unusable(alone, row_error)
            if len(good) == batch.num_rows:
                yield self.unusable(document, error)
            elif good:
                yield from self._take_batch(document, batch.take(good))
            return
        yield from outputs

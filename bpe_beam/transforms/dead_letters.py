"""A second output for documents that cannot be used: pairs of the element and the reason."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

import apache_beam as beam
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PANE_INFO_UNKNOWN, PaneInfo, WindowedValue

from bpe_beam.errors import DataError
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.elements import Element
from bpe_beam.workers import metric_names

_DEAD = "dead"
_MAIN = "main"

T = TypeVar("T", bound="DeadLetterTransform")


class DeadLetterTransform(beam.PTransform):
    """A transform with an optional second output for documents that cannot be used."""

    dead_letters = False

    def with_dead_letters(self: T) -> T:
        """Return the same transform with a second output, for documents that cannot be used.

        `good, dead = documents | Transform().with_dead_letters()`: `dead` contains pairs
        `(element, reason)`. Of an Arrow batch only the unusable rows are taken out, each as a batch
        of one row.
        """
        transform = copy(self)
        transform.dead_letters = True
        return transform

    def _outputs(
        self,
        documents: beam.pvalue.PCollection,
        label: str,
        step: beam.ParDo,
        output_type: Any,
    ) -> tuple[beam.pvalue.PCollection, beam.pvalue.PCollection | None]:
        """Return the step's main output, and its dead letters if they have an output."""
        if not self.dead_letters:
            return documents | label >> step.with_output_types(output_type), None
        letters = {_DEAD: beam.typehints.Tuple[documents.element_type, str]}
        typed = step.with_output_types(output_type, **letters)
        outputs = documents | label >> typed.with_outputs(_DEAD, main=_MAIN)
        return outputs[_MAIN], outputs[_DEAD]


def dead_letter(element: Element, error: DataError) -> beam.pvalue.TaggedOutput:
    """Return an unusable element for the second output, and count it.

    Args:
        element: The element, with its key if it has one.
        error: Why it cannot be used.
    """
    counters.counter(metric_names.DEAD_LETTERS).inc()
    return beam.pvalue.TaggedOutput(_DEAD, (element, str(error)))


def in_window(
    output: Any, timestamp: Timestamp, window: Any, pane: PaneInfo = PANE_INFO_UNKNOWN
) -> Any:
    """Return an output, tagged or not, with the timestamp, window and pane of its document.

    Args:
        output: A value or a `TaggedOutput`.
        timestamp: The document's timestamp.
        window: The document's window.
        pane: The document's pane.
    """
    if isinstance(output, beam.pvalue.TaggedOutput):
        value = WindowedValue(output.value, timestamp, (window,), pane)
        return beam.pvalue.TaggedOutput(output.tag, value)
    return WindowedValue(output, timestamp, (window,), pane)

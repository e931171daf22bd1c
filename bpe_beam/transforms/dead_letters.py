"""A second output for documents that cannot be used: pairs of the element and the reason."""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

import apache_beam as beam

DEAD = "dead"
"""The tag of the second output."""

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
        letters = {DEAD: beam.typehints.Tuple[documents.element_type, str]}
        typed = step.with_output_types(output_type, **letters)
        outputs = documents | label >> typed.with_outputs(DEAD, main=_MAIN)
        return outputs[_MAIN], outputs[DEAD]

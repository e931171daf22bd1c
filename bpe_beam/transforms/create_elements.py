"""Elements that are known when a pipeline is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam


class CreateElements(beam.PTransform):
    """A collection of elements that are given; they travel in the pipeline's description.

    What Beam's own Create does, but its steps are labelled by line numbers of Beam, and have no
    types.

    Args:
        elements: The elements; together some tens of MB at most.
        element_type: Their type.
    """

    def __init__(self, elements: Iterable[Any], element_type: Any) -> None:
        super().__init__()
        self.elements = list(elements)
        self.element_type = element_type

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Wires the steps."""
        give = beam.ParDo(_Give(self.elements)).with_output_types(self.element_type)
        return begin | "Begin" >> beam.Impulse() | "Give" >> give


@beam.typehints.with_input_types(bytes)
class _Give(beam.DoFn):
    """All elements, when the pipeline begins."""

    def __init__(self, elements: list[Any]) -> None:
        self.elements = elements

    def process(self, _: bytes) -> Iterator[Any]:
        """Gives them."""
        yield from self.elements

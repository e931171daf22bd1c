"""`CreateElements`: elements that are known when the pipeline is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam


class CreateElements(beam.PTransform):
    """Returns a collection of the elements, which travel in the pipeline's description.

    Beam's own `Create` does the same, but labels its steps by line numbers of Beam and has no
    types.

    Args:
        elements: The elements, at most some tens of MB in total.
        element_type: Their type.
    """

    def __init__(self, elements: Iterable[Any], element_type: Any) -> None:
        super().__init__()
        self.elements = list(elements)
        self.element_type = element_type

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the elements."""
        create = beam.ParDo(_Create(self.elements)).with_output_types(self.element_type)
        return begin | "Begin" >> beam.Impulse() | "Create" >> create


@beam.typehints.with_input_types(bytes)
class _Create(beam.DoFn):
    """An impulse to all elements.

    A lambda would do the same, but Beam pickles it with the path of this file, which a job on
    Dataflow must not tell.
    """

    def __init__(self, elements: list[Any]) -> None:
        self.elements = elements

    def process(self, _: bytes) -> Iterator[Any]:
        """Yield the elements."""
        yield from self.elements

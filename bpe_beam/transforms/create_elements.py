"""`CreateElements`: elements that are known when the pipeline is built."""

from __future__ import annotations

from collections.abc import Iterable
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
        elements = self.elements
        create = beam.FlatMap(lambda _: elements).with_output_types(self.element_type)
        return begin | "Begin" >> beam.Impulse() | "Create" >> create

"""`SpreadWorks`: the splits of a plan as elements, spread over the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam


@beam.typehints.with_output_types(str)
class SpreadWorks(beam.PTransform):
    """Works, see `works_of`, spread over the workers.

    A shuffle by the work's number. Beam's own Reshuffle does the same by random numbers, but
    carries windows and timestamps along, pickled.
    """

    def __init__(self, works: Iterable[str]) -> None:
        super().__init__()
        self.works = list(enumerate(works))

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Wires the steps."""
        return (
            begin
            | "Works" >> beam.Create(self.works, reshuffle=False).with_output_types(tuple[int, str])
            | "Spread" >> beam.GroupByKey()
            | "TakeWork" >> beam.ParDo(_TakeWork())
        )


@beam.typehints.with_input_types(tuple[int, Iterable[str]])
@beam.typehints.with_output_types(str)
class _TakeWork(beam.DoFn):
    """A numbered work without its number."""

    def process(self, element: tuple[int, Iterable[str]]) -> Iterator[str]:
        """There is one a number."""
        yield from element[1]

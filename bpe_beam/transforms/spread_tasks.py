"""Elements that are known when the pipeline is built, and tasks spread over the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam

from bpe_beam.errors import DataError
from bpe_beam.transforms.chunks import Chunk, from_chunks, to_chunks


class CreateElements(beam.PTransform):
    """Returns a collection of the elements, which travel in the pipeline's description.

    Beam's own `Create` does the same, but labels its steps by line numbers of Beam and has no
    types.
    """

    def __init__(self, elements: Iterable[Any], element_type: Any) -> None:
        super().__init__()
        self.elements = list(elements)
        self.element_type = element_type

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the elements."""
        create = beam.ParDo(_Create(self.elements)).with_output_types(self.element_type)
        return begin | "Begin" >> beam.Impulse() | "Create" >> create


class _Create(beam.DoFn):
    """Turns an impulse into all elements.

    Not a lambda, which Beam pickles with the path of this file: a job on Dataflow must not show it.
    """

    def __init__(self, elements: list[Any]) -> None:
        self.elements = elements

    def process(self, _: bytes) -> Iterator[Any]:
        """Yield the elements."""
        yield from self.elements


@beam.typehints.with_output_types(str)
class SpreadTasks(beam.PTransform):
    """Returns tasks as elements that are spread over the workers.

    The shuffle is by the number of the task. Beam's own `Reshuffle` uses random numbers, but
    carries windows and timestamps along, pickled. The task of many small files has some MB, so
    tasks are shuffled in chunks.
    """

    def __init__(self, tasks: Iterable[str]) -> None:
        super().__init__()
        self.chunks = [
            (number, chunk)
            for number, task in enumerate(tasks)
            # A file name that is not UTF-8 has lone surrogates.
            for chunk in to_chunks(task.encode("utf-8", "surrogatepass"))
        ]

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the tasks."""
        return (
            begin
            | "Tasks" >> CreateElements(self.chunks, tuple[int, Chunk])
            | "Spread" >> beam.GroupByKey()
            | "JoinChunks" >> beam.FlatMap(_join_chunks).with_output_types(str)
        )


def _join_chunks(element: tuple[int, Iterable[Chunk]]) -> Iterator[str]:
    """Yield a task, joined of its chunks."""
    task, *others = from_chunks(element[1], "task")
    if others:
        raise DataError("the runner delivered a task twice")
    yield task.decode("utf-8", "surrogatepass")

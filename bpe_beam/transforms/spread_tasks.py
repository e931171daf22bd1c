"""`SpreadTasks`: the tasks of a job as elements, spread over the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from bpe_beam.errors import DataError
from bpe_beam.transforms.chunks import Chunk, from_chunks, to_chunks
from bpe_beam.transforms.create_elements import CreateElements


@beam.typehints.with_output_types(str)
class SpreadTasks(beam.PTransform):
    """Returns tasks as elements that are spread over the workers.

    The shuffle is by the number of the task. Beam's own `Reshuffle` uses random numbers, but
    carries windows and timestamps along, pickled. The task of many small files has some MB, so
    tasks are shuffled in chunks.

    Args:
        tasks: The tasks as JSON texts.
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
            | "JoinChunks" >> beam.ParDo(_JoinChunks())
        )


@beam.typehints.with_input_types(tuple[int, Iterable[Chunk]])
@beam.typehints.with_output_types(str)
class _JoinChunks(beam.DoFn):
    """The chunks of a task to the task."""

    def process(self, element: tuple[int, Iterable[Chunk]]) -> Iterator[str]:
        """Join the chunks of one task.

        Raises:
            DataError: The runner lost a chunk, or delivered one twice.
        """
        task, *others = from_chunks(element[1], "task")
        if others:
            raise DataError("the runner delivered a task twice")
        yield task.decode("utf-8", "surrogatepass")

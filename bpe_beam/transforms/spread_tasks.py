"""`SpreadTasks`: the tasks of a job as elements, spread over the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from bpe_beam.errors import DataError
from bpe_beam.transforms.create_elements import CreateElements

_CHUNK_CHARACTERS = 240_000
"""Characters of a chunk of a task: at four bytes each, under 1 MB."""

_Chunk = tuple[int, int, str]
"""The chunk's offset in the task's text, the length of that text, and the chunk, in characters."""


@beam.typehints.with_output_types(str)
class SpreadTasks(beam.PTransform):
    """Returns tasks as elements that are spread over the workers.

    The shuffle is by the number of the task. Beam's own `Reshuffle` uses random numbers, but
    carries windows and timestamps along, pickled. The task of many small files has some MB, so
    tasks are shuffled in chunks.

    Args:
        tasks: The tasks' texts, as `tasks_of` makes them.
    """

    def __init__(self, tasks: Iterable[str]) -> None:
        super().__init__()
        self.chunks = [
            (number, (start, len(task), task[start : start + _CHUNK_CHARACTERS]))
            for number, task in enumerate(tasks)
            for start in range(0, len(task), _CHUNK_CHARACTERS)
        ]

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the tasks."""
        return (
            begin
            | "Tasks" >> CreateElements(self.chunks, tuple[int, _Chunk])
            | "Spread" >> beam.GroupByKey()
            | "JoinChunks" >> beam.ParDo(_JoinChunks())
        )


@beam.typehints.with_input_types(tuple[int, Iterable[_Chunk]])
@beam.typehints.with_output_types(str)
class _JoinChunks(beam.DoFn):
    """The chunks of a task to the task."""

    def process(self, element: tuple[int, Iterable[_Chunk]]) -> Iterator[str]:
        """Join the chunks of one task.

        Raises:
            DataError: The chunks are not the whole task.
        """
        chunks = sorted(element[1])
        task = "".join(text for _, _, text in chunks)
        if len(task) != chunks[0][1]:
            raise DataError("the runner lost a part of a task, or delivered it twice")
        yield task

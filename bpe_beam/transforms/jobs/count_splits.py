"""`CountSplits`: the transform of the count job, from splits to the parts of a counts folder.

Only references to blocks of words travel; see `workers/count_split.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from bpe_beam.counts.manifest import part_name
from bpe_beam.counts.word_table import PARTITIONS
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.create_elements import CreateElements
from bpe_beam.transforms.spread_tasks import SpreadTasks
from bpe_beam.workers import metric_names, processes
from bpe_beam.workers.count_split import CountTask, RangeReference, count_split, write_partition

_WORKER_RAM = "2GB"


@beam.typehints.with_output_types(str)
class CountSplits(beam.PTransform):
    """Count splits, and write the parts of a counts folder; the output is the parts' names.

    Args:
        task: The job.
        tasks: The splits that are not counted yet; see `split_tasks`.
        known: Where the words of splits that were counted before are, by partition.
        partitions: The parts that are not written yet.
    """

    def __init__(
        self,
        task: CountTask,
        tasks: Iterable[str],
        known: Iterable[tuple[int, RangeReference]],
        partitions: Iterable[int],
    ) -> None:
        super().__init__()
        # For all steps: steps with different hints are not fused.
        self.with_resource_hints(min_ram=_WORKER_RAM)
        self.task = task
        self.tasks = list(tasks)
        self.partitions = frozenset(partitions)
        # Each part gets an empty range, so that a part without words is written too.
        empty = ("", "", 0, 0)
        self.known = [(partition, empty) for partition in sorted(self.partitions)]
        self.known += [row for row in known if row[0] in self.partitions]

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the names of the parts."""
        counted = (
            begin
            | "Splits" >> SpreadTasks(self.tasks)
            | "CountSplit" >> beam.ParDo(_CountSplit(self.task, self.partitions))
        )
        known = begin | "KnownBlocks" >> CreateElements(self.known, tuple[int, RangeReference])
        return (
            (counted, known)
            | "AllBlocks" >> beam.Flatten().with_output_types(tuple[int, RangeReference])
            | "GatherPartitions" >> beam.GroupByKey()
            | "WritePart" >> beam.ParDo(_WritePart(self.task))
        )


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(tuple[int, RangeReference])
class _CountSplit(beam.DoFn):
    """A split to its counts file; yields where its words are, by partition."""

    def __init__(self, task: CountTask, partitions: frozenset[int]) -> None:
        self.task = task
        self.partitions = partitions

    def process(self, element: str) -> Iterator[tuple[int, RangeReference]]:
        """Count one split."""
        counted = processes.call(self.task.pool, count_split, self.task, element)
        counters.record(counted.counts, counted.values)
        for partition, reference in counted.ranges:
            if partition in self.partitions:
                yield partition, reference


@beam.typehints.with_input_types(tuple[int, Iterable[RangeReference]])
@beam.typehints.with_output_types(str)
class _WritePart(beam.DoFn):
    """A partition's blocks to its part."""

    def __init__(self, task: CountTask) -> None:
        self.task = task

    def process(self, element: tuple[int, Iterable[RangeReference]]) -> Iterator[str]:
        """Add up the blocks of one partition and write its words."""
        partition, ranges = element
        part = write_partition(self.task, partition, ranges)
        counters.counter(metric_names.UNIQUE_WORDS).inc(part.unique_words)
        yield part_name(partition, PARTITIONS)

"""`TokenizeSplits`: the transform of the tokenize job, from splits to shards.

No token travels; see `workers/tokenize_split.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.spread_tasks import SpreadTasks
from bpe_beam.workers import processes
from bpe_beam.workers.tokenize_split import TokenizeTask, tokenize_split

_WORKER_RAM = "1GB"


@beam.typehints.with_output_types(str)
class TokenizeSplits(beam.PTransform):
    """Write a shard for each split; the output is the shards' names.

    Args:
        task: The job.
        tasks: The splits that have no shard yet; see `split_tasks`.
    """

    def __init__(self, task: TokenizeTask, tasks: Iterable[str]) -> None:
        super().__init__()
        # For all steps: steps with different hints are not fused.
        self.with_resource_hints(min_ram=_WORKER_RAM)
        self.task = task
        self.tasks = list(tasks)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the names of the shards."""
        return (
            begin
            | "Splits" >> SpreadTasks(self.tasks)
            | "TokenizeSplit" >> beam.ParDo(_TokenizeSplit(self.task))
        )


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(str)
class _TokenizeSplit(beam.DoFn):
    """Splits to shards."""

    def __init__(self, task: TokenizeTask) -> None:
        self.task = task

    def process(self, element: str) -> Iterator[str]:
        """Write one shard."""
        made = processes.call(self.task.pool, tokenize_split, self.task, element)
        counters.record(made.counts, made.values)
        yield made.name

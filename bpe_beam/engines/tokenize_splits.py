"""The steps of the tokenize job: from splits to shards. No token travels."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from bpe_beam.engines.steps import Collection, Engine, TaskResult
from bpe_beam.workers.tokenize_split import TokenizeTask, tokenize_split


def tokenize_splits(engine: Engine, task: TokenizeTask, tasks: Iterable[str]) -> Collection:
    """Write a shard for each split.

    Args:
        engine: Runs the steps.
        task: The job.
        tasks: The splits that have no shard yet; see `split_tasks`.

    Returns:
        The names of the shards.
    """
    splits = engine.tasks("Splits", tasks)
    return engine.run("TokenizeSplit", partial(_tokenize_split, task), splits, str)


def _tokenize_split(task: TokenizeTask, element: str) -> TaskResult:
    """Write the shard of a split; the output is its name."""
    made = tokenize_split(task, element)
    return TaskResult([made.name], made.counts, made.values)

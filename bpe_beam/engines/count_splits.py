"""The steps of the count job: from splits to the parts of a counts folder.

Only references to blocks of words travel; see `workers/count_split.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from bpe_beam.engines import steps
from bpe_beam.engines.steps import Engine
from bpe_beam.workers.count_split import BlocksReference, CountTask, count_split, write_partition
from bpe_beam.workers.measured import TaskResult

_NO_WORDS: BlocksReference = ("", "", 0, 0)


def count_splits(
    engine: Engine,
    task: CountTask,
    tasks: Iterable[str],
    known: Iterable[tuple[int, BlocksReference]],
    partitions: Collection[int],
) -> steps.Collection:
    """Count splits, write the parts of a counts folder, and return the names of the parts."""
    # Each part gets a reference to no block, so that a part without words is written too.
    rows = [(partition, _NO_WORDS) for partition in sorted(partitions)]
    rows += [row for row in known if row[0] in partitions]
    counted = engine.run(
        "CountSplit",
        partial(_count_split, task, frozenset(partitions)),
        engine.tasks("Splits", tasks),
        tuple[int, BlocksReference],
    )
    gathered = engine.gather("GatherPartitions", counted, rows)
    return engine.run("WritePart", partial(write_partition, task), gathered, str)


def _count_split(task: CountTask, partitions: frozenset[int], element: str) -> TaskResult:
    """Count a split; the outputs are references to its blocks of some partitions."""
    counted = count_split(task, element)
    return counted._replace(outputs=[row for row in counted.outputs if row[0] in partitions])

"""The steps of distributed training: one round over all word batches.

Only block references travel; see `workers/rounds/task.py`. The round waits twice: for the sums of
all pairs before words are cut into segments, and for the sums of all segments at its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from bpe_beam.engines.steps import Collection, Engine
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.workers.rounds.merge_steps import (
    Applied,
    add_segments,
    apply_merges,
    see_part,
    segment_words,
    sum_pairs,
)
from bpe_beam.workers.rounds.task import BlockReference, RoundTask, WordBatchTask
from bpe_beam.workers.task_results import TaskResult


def merge_round(engine: Engine, task: RoundTask, tasks: Iterable[WordBatchTask]) -> Collection:
    """Apply merges to all word batches, count their pairs, cut their words and add segments up.

    Everything is written to the run's folder, with receipts. Returns the last tasks of the round,
    as texts.
    """
    texts = [word_batch.to_json() for word_batch in tasks]
    applied = engine.run(
        "ApplyMerges", partial(apply_merges, task), engine.tasks("WordBatches", texts), Applied
    )
    word_batches = engine.run("WordBatch", _word_batch, applied, tuple[int, str])
    pairs = engine.run("PairBlocks", _pair_blocks, applied, tuple[int, BlockReference])
    gathered = engine.gather("GatherPairs", pairs)
    shards = engine.run("SumPairs", partial(sum_pairs, task), gathered, str)
    segments = engine.run(
        "SegmentWords",
        partial(segment_words, task),
        engine.gather("SpreadWordBatches", word_batches),
        tuple[int, BlockReference],
        word_batches,
        shards,
    )
    gathered = engine.gather("GatherSegments", segments)
    return engine.run("AddSegments", partial(add_segments, task), gathered, str)


def see_parts(engine: Engine, task: RoundTask, recipe: BpeRecipe | WordPieceRecipe) -> Collection:
    """Find the symbols of the words of each part of the counts; return the parts' numbers."""
    parts = engine.tasks("Parts", map(str, range(len(task.manifest.parts))))
    return engine.run("See", partial(see_part, task, recipe), parts, str)


def _word_batch(element: Applied) -> TaskResult:
    return TaskResult([element[:2]])


def _pair_blocks(element: Applied) -> TaskResult:
    return TaskResult(list(element[2]))

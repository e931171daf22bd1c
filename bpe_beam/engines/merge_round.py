"""The steps of distributed training: one round over all word batches.

Only block references travel; see `workers/rounds/task.py`. The round waits twice: for the sums of
all pairs before words are cut into segments, and for the sums of all segments at its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from bpe_beam.engines.steps import Collection, Engine
from bpe_beam.errors import DataError
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.workers.measured import TaskResult
from bpe_beam.workers.rounds.merge_steps import (
    add_segments,
    apply_merges,
    see_part,
    segment_words,
    sum_pairs,
)
from bpe_beam.workers.rounds.task import (
    BlockReference,
    PairShard,
    RoundTask,
    WordBatch,
    WordBatchTask,
)

_Applied = tuple[int, str, Iterable[tuple[int, BlockReference]]]
"""A word batch's number, what it is now, and where its pairs are by shard."""

_Blocks = tuple[int, Iterable[BlockReference]]
"""A shard's number, and where its blocks are."""


def merge_round(engine: Engine, task: RoundTask, tasks: Iterable[WordBatchTask]) -> Collection:
    """Apply merges to all word batches, count their pairs, cut their words and add segments up.

    Everything is written to the run's folder, with receipts.

    Args:
        engine: Runs the steps.
        task: The round.
        tasks: Its word batches.

    Returns:
        The last tasks of the round, as texts.
    """
    texts = [word_batch.to_json() for word_batch in tasks]
    applied = engine.run(
        "ApplyMerges", partial(_apply_merges, task), engine.tasks("WordBatches", texts), _Applied
    )
    word_batches = engine.run("WordBatch", _word_batch, applied, tuple[int, str])
    pairs = engine.run("PairBlocks", _pair_blocks, applied, tuple[int, BlockReference])
    gathered = engine.gather("GatherPairs", pairs)
    shards = engine.run("SumPairs", partial(_sum_pairs, task), gathered, str)
    segments = engine.run(
        "SegmentWords",
        partial(_segment_words, task),
        engine.gather("SpreadWordBatches", word_batches),
        tuple[int, BlockReference],
        word_batches,
        shards,
    )
    gathered = engine.gather("GatherSegments", segments)
    return engine.run("AddSegments", partial(_add_segments, task), gathered, str)


def see_parts(engine: Engine, task: RoundTask, recipe: BpeRecipe | WordPieceRecipe) -> Collection:
    """Find the symbols of the words of each part of the counts.

    Args:
        engine: Runs the steps.
        task: The first round.
        recipe: What is trained.

    Returns:
        The numbers of the parts, as texts.
    """
    parts = engine.tasks("Parts", map(str, range(len(task.manifest.parts))))
    return engine.run("See", partial(_see_part, task, recipe), parts, str)


def _apply_merges(task: RoundTask, element: str) -> TaskResult:
    word_batch, written = apply_merges(task, element)
    number = WordBatchTask.from_json(element).number
    return TaskResult([(number, word_batch.to_json(), written.blocks)], written.counts)


def _word_batch(element: _Applied) -> TaskResult:
    return TaskResult([element[:2]])


def _pair_blocks(element: _Applied) -> TaskResult:
    return TaskResult(list(element[2]))


def _sum_pairs(task: RoundTask, element: _Blocks) -> TaskResult:
    return TaskResult([sum_pairs(task, *element).to_json()])


def _segment_words(
    task: RoundTask,
    word_batches: list[tuple[int, str]],
    shards: list[str],
    element: tuple[int, Iterable[str]],
) -> TaskResult:
    number, texts = element
    text, *others = texts
    if others:
        raise DataError(f"the runner returned word batch {number} twice")
    written = segment_words(
        task,
        number,
        WordBatch.from_json(text),
        (WordBatch.from_json(other) for _, other in word_batches),
        map(PairShard.from_json, shards),
    )
    return TaskResult(written.blocks, written.counts)


def _add_segments(task: RoundTask, element: _Blocks) -> TaskResult:
    return TaskResult([add_segments(task, *element)])


def _see_part(task: RoundTask, recipe: BpeRecipe | WordPieceRecipe, element: str) -> TaskResult:
    see_part(task, recipe, int(element))
    return TaskResult([element])

"""`MergeRound`, the pipeline of distributed training: one round over all word batches.

Only block references travel; see `workers/rounds/task.py`. The round waits twice: for the sums of
all pairs before words are cut, and for the sums of all segments at its end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import apache_beam as beam

from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.spread_tasks import SpreadTasks
from bpe_beam.workers.rounds.apply_merges import apply_merges, see_part
from bpe_beam.workers.rounds.segment_words import add_segments, segment_words, sum_pairs
from bpe_beam.workers.rounds.task import BlockReference, RoundTask
from bpe_beam.workers.rounds.word_batches import PairShard, WordBatch, WordBatchTask

_WORKER_RAM = "2GB"


@beam.typehints.with_output_types(str)
class MergeRound(beam.PTransform):
    """Apply merges to all word batches, count their pairs, cut their words and add segments up.

    Everything is written to the run's folder, with receipts; the output is the names of the tasks
    that added segments up.

    Args:
        task: The round.
        tasks: Its word batches.
    """

    def __init__(self, task: RoundTask, tasks: Iterable[WordBatchTask]) -> None:
        super().__init__()
        # Of all steps: those that differ in their hints are not fused.
        self.with_resource_hints(min_ram=_WORKER_RAM)
        self.task = task
        self.tasks = [word_batch.to_json() for word_batch in tasks]

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the names of the last tasks of the round."""
        written = (
            begin
            | "WordBatches" >> SpreadTasks(self.tasks)
            | "ApplyMerges" >> beam.ParDo(_ApplyMerges(self.task))
        )
        word_batches = written | "WordBatch" >> beam.ParDo(_WordBatch())
        shards = (
            written
            | "PairBlocks" >> beam.ParDo(_PairBlocks())
            | "GatherPairs" >> beam.GroupByKey()
            | "SumPairs" >> beam.ParDo(_SumPairs(self.task))
        )
        if not self.task.cuts:
            return shards
        return (
            word_batches
            | "SpreadWordBatches" >> beam.GroupByKey()
            | "SegmentWords"
            >> beam.ParDo(
                _SegmentWords(self.task),
                word_batches=beam.pvalue.AsList(word_batches),
                shards=beam.pvalue.AsList(shards),
            )
            | "GatherSegments" >> beam.GroupByKey()
            | "AddSegments" >> beam.ParDo(_AddSegments(self.task))
        )


_Rewritten = tuple[int, str, Iterable[tuple[int, BlockReference]]]


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(_Rewritten)
class _ApplyMerges(beam.DoFn):
    """A word batch to its number, what it is now, and where its pairs are by shard."""

    def __init__(self, task: RoundTask) -> None:
        self.task = task

    def process(self, element: str) -> Iterator[_Rewritten]:
        """Write one word batch anew."""
        word_batch, written = apply_merges(self.task, element)
        counters.record(written.counts, {})
        number = WordBatchTask.from_json(element).number
        yield number, json.dumps(word_batch.to_json()), written.blocks


@beam.typehints.with_input_types(_Rewritten)
@beam.typehints.with_output_types(tuple[int, str])
class _WordBatch(beam.DoFn):
    """A word batch under its number."""

    def process(self, element: _Rewritten) -> Iterator[tuple[int, str]]:
        """Yield one."""
        yield element[0], element[1]


@beam.typehints.with_input_types(_Rewritten)
@beam.typehints.with_output_types(tuple[int, BlockReference])
class _PairBlocks(beam.DoFn):
    """A word batch to where its pairs are by shard."""

    def process(self, element: _Rewritten) -> Iterator[tuple[int, BlockReference]]:
        """Yield the block references of one word batch."""
        yield from element[2]


@beam.typehints.with_input_types(tuple[int, Iterable[BlockReference]])
@beam.typehints.with_output_types(str)
class _SumPairs(beam.DoFn):
    """A shard's pairs to their sums."""

    def __init__(self, task: RoundTask) -> None:
        self.task = task

    def process(self, element: tuple[int, Iterable[BlockReference]]) -> Iterator[str]:
        """Add one shard up."""
        yield sum_pairs(self.task, *element).to_json()


@beam.typehints.with_input_types(
    tuple[int, Iterable[str]], word_batches=beam.typehints.Any, shards=beam.typehints.Any
)
@beam.typehints.with_output_types(tuple[int, BlockReference])
class _SegmentWords(beam.DoFn):
    """A word batch to where its segments are by shard."""

    def __init__(self, task: RoundTask) -> None:
        self.task = task

    def process(
        self,
        element: tuple[int, Iterable[str]],
        word_batches: list[tuple[int, str]],
        shards: list[str],
    ) -> Iterator[tuple[int, BlockReference]]:
        """Cut the words of one word batch."""
        number, texts = element
        for text in texts:
            written = segment_words(
                self.task,
                number,
                WordBatch.from_json(json.loads(text)),
                (WordBatch.from_json(json.loads(other)) for _, other in word_batches),
                map(PairShard.from_json, shards),
            )
            counters.record(written.counts, {})
            yield from written.blocks


@beam.typehints.with_input_types(tuple[int, Iterable[BlockReference]])
@beam.typehints.with_output_types(str)
class _AddSegments(beam.DoFn):
    """A shard's segments to a file of them."""

    def __init__(self, task: RoundTask) -> None:
        self.task = task

    def process(self, element: tuple[int, Iterable[BlockReference]]) -> Iterator[str]:
        """Add one shard up."""
        yield add_segments(self.task, *element)


@beam.typehints.with_output_types(int)
class SeeParts(beam.PTransform):
    """Find the symbols of the words of each part of the counts; the output is the parts' numbers.

    Args:
        task: The first round.
        recipe: What is trained.
    """

    def __init__(self, task: RoundTask, recipe: BpeRecipe | WordPieceRecipe) -> None:
        super().__init__()
        self.with_resource_hints(min_ram=_WORKER_RAM)
        self.task = task
        self.recipe = recipe

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the parts' numbers."""
        parts = [str(number) for number in range(len(self.task.manifest.parts))]
        return (
            begin
            | "Parts" >> SpreadTasks(parts)
            | "See" >> beam.ParDo(_See(self.task, self.recipe))
        )


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(int)
class _See(beam.DoFn):
    """A part to the symbols of its words."""

    def __init__(self, task: RoundTask, recipe: BpeRecipe | WordPieceRecipe) -> None:
        self.task = task
        self.recipe = recipe

    def process(self, element: str) -> Iterator[int]:
        """Read one part."""
        see_part(self.task, self.recipe, int(element))
        yield int(element)

"""`MergeRound`, what distributed training is made of: one round over the pieces of its state.

Only block references travel; see `workers/rounds/task.py`. Two things are waited for: all pairs,
before words are cut, and all segments, by the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.spread_tasks import SpreadTasks
from bpe_beam.workers.rounds.apply_merges import rewrite_piece, see_part
from bpe_beam.workers.rounds.segment_words import add_segments, cut_piece, sum_pairs
from bpe_beam.workers.rounds.task import PieceWork, Place, RoundTask

_WORKER_RAM = "2GB"


@beam.typehints.with_output_types(str)
class MergeRound(beam.PTransform):
    """Rewrites all pieces, counts their pairs, cuts them and adds the segments up.

    Everything is written to the run's folder, with receipts; the output is the names of the
    segments' pieces.

    Args:
        task: The round.
        works: Its pieces, see `PieceWork`.
    """

    def __init__(self, task: RoundTask, works: Iterable[PieceWork]) -> None:
        super().__init__()
        # Of all steps: those that differ in their hints are not fused.
        self.with_resource_hints(min_ram=_WORKER_RAM)
        self.task = task
        self.works = [work.to_json() for work in works]

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Wires the steps."""
        written = (
            begin
            | "Pieces" >> SpreadTasks(self.works)
            | "Rewrite" >> beam.ParDo(_Rewrite(self.task))
        )
        pieces = written | "Piece" >> beam.ParDo(_Piece())
        shards = (
            written
            | "PairPlaces" >> beam.ParDo(_PairPlaces())
            | "GatherPairs" >> beam.GroupByKey()
            | "SumPairs" >> beam.ParDo(_SumPairs(self.task))
        )
        if not self.task.cuts:
            return shards
        return (
            pieces
            | "SpreadPieces" >> beam.GroupByKey()
            | "Cut"
            >> beam.ParDo(
                _Cut(self.task),
                pieces=beam.pvalue.AsList(pieces),
                shards=beam.pvalue.AsList(shards),
            )
            | "GatherSegments" >> beam.GroupByKey()
            | "AddSegments" >> beam.ParDo(_AddSegments(self.task))
        )


_Rewritten = tuple[int, str, Iterable[tuple[int, Place]]]


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(_Rewritten)
class _Rewrite(beam.DoFn):
    """A piece to its number, its next state, and its pairs' places by shard."""

    def __init__(self, task: RoundTask) -> None:
        self.task = task

    def process(self, element: str) -> Iterator[_Rewritten]:
        """Rewrites one piece."""
        written = rewrite_piece(self.task, element)
        counters.record(written.counts, {})
        yield PieceWork.from_json(element).number, written.element, written.places


@beam.typehints.with_input_types(_Rewritten)
@beam.typehints.with_output_types(tuple[int, str])
class _Piece(beam.DoFn):
    """What was rewritten to the piece under its number."""

    def process(self, element: _Rewritten) -> Iterator[tuple[int, str]]:
        """Gives one."""
        yield element[0], element[1]


@beam.typehints.with_input_types(_Rewritten)
@beam.typehints.with_output_types(tuple[int, Place])
class _PairPlaces(beam.DoFn):
    """What was rewritten to the places of its pairs by shard."""

    def process(self, element: _Rewritten) -> Iterator[tuple[int, Place]]:
        """Gives them."""
        yield from element[2]


@beam.typehints.with_input_types(tuple[int, Iterable[Place]])
@beam.typehints.with_output_types(str)
class _SumPairs(beam.DoFn):
    """A shard's pairs to their sums."""

    def __init__(self, task: RoundTask) -> None:
        self.task = task

    def process(self, element: tuple[int, Iterable[Place]]) -> Iterator[str]:
        """Adds one shard up."""
        yield sum_pairs(self.task, *element)


@beam.typehints.with_input_types(
    tuple[int, Iterable[str]], pieces=beam.typehints.Any, shards=beam.typehints.Any
)
@beam.typehints.with_output_types(tuple[int, Place])
class _Cut(beam.DoFn):
    """A piece to the places of its segments by shard."""

    def __init__(self, task: RoundTask) -> None:
        self.task = task

    def process(
        self, element: tuple[int, Iterable[str]], pieces: list[tuple[int, str]], shards: list[str]
    ) -> Iterator[tuple[int, Place]]:
        """Cuts one piece."""
        known = [piece for _, piece in pieces]
        for piece in element[1]:
            written = cut_piece(self.task, piece, known, shards)
            counters.record(written.counts, {})
            yield from written.places


@beam.typehints.with_input_types(tuple[int, Iterable[Place]])
@beam.typehints.with_output_types(str)
class _AddSegments(beam.DoFn):
    """A shard's segments to a file of them."""

    def __init__(self, task: RoundTask) -> None:
        self.task = task

    def process(self, element: tuple[int, Iterable[Place]]) -> Iterator[str]:
        """Adds one shard up."""
        yield add_segments(self.task, *element)


@beam.typehints.with_output_types(int)
class SeeParts(beam.PTransform):
    """Looks which characters the words of each part of the counts have; the output is the parts.

    Args:
        task: Of the first round.
        recipe: What is to be learned.
    """

    def __init__(self, task: RoundTask, recipe: BpeRecipe | WordPieceRecipe) -> None:
        super().__init__()
        self.with_resource_hints(min_ram=_WORKER_RAM)
        self.task = task
        self.recipe = recipe

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Wires the steps."""
        parts = [str(number) for number in range(len(self.task.manifest.parts))]
        return (
            begin
            | "Parts" >> SpreadTasks(parts)
            | "See" >> beam.ParDo(_See(self.task, self.recipe))
        )


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(int)
class _See(beam.DoFn):
    """A part to what its words have."""

    def __init__(self, task: RoundTask, recipe: BpeRecipe | WordPieceRecipe) -> None:
        self.task = task
        self.recipe = recipe

    def process(self, element: str) -> Iterator[int]:
        """Looks at one part."""
        see_part(self.task, self.recipe, int(element))
        yield int(element)

"""The result of a merge round, and its merges: of all words, of segments, or of the best pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.round_files import Columns, read_words
from bpe_beam.errors import UsageError
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.training.merges import rounds
from bpe_beam.training.merges.native_trainer import NewMerges, Vocabulary
from bpe_beam.training.merges.symbols import WordSymbols
from bpe_beam.training.merges.words import DRIVER_SHARE, Room, memory_needed
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.workers.rounds.task import (
    PairShard,
    RoundTask,
    SegmentedStats,
    SegmentStats,
    WordBatch,
    floor_of,
    read_best,
    read_frequent,
    require_all,
    size_of,
)
from bpe_beam.workers.split_task import task_name


def task_names(kind: str, count: int) -> list[str]:
    return [task_name(kind, number, count) for number in range(count)]


class RoundResult:
    """The result of a round, as its receipts record it."""

    def __init__(self, run: RunFolder, task: RoundTask, receipts: dict[str, Receipt]) -> None:
        self._run = run
        self.task = task

        def of_kind(kind: str, count: int) -> list[Receipt]:
            # Shards without content have no receipt.
            return [receipts[name] for name in task_names(kind, count) if name in receipts]

        words, cut = of_kind("words", task.word_batches), of_kind("cut", task.word_batches)
        pairs, segments = of_kind("pairs", task.shards), of_kind("segments", task.shards)
        self.word_batches = stats = [row.read_stats(WordBatch) for row in words]
        self.shards = [row.read_stats(PairShard) for row in pairs]
        segment_stats = [row.read_stats(SegmentStats) for row in segments]
        require_all("pairs", stats, self.shards)
        require_all("segments", [row.read_stats(SegmentedStats) for row in cut], segment_stats)
        self.words = size_of(stats)
        self.weight = sum(row.weight for row in stats)
        self.singles = sum(row.singles for row in stats)
        self.all_words = sum(row.all_words for row in stats)
        self.all_bytes = sum(row.all_bytes for row in stats)
        self.best_count = max((shard.best_count for shard in self.shards), default=0)
        self.best = [row.files[1] for row in pairs]
        self.segments = size_of(segment_stats)
        self._pairs = sum(row.pairs for row in self.shards)
        self._segment_files = [row.files[0] for row in segments]
        self._shuffled = sum(
            file.bytes
            for row in receipts.values()
            for file in row.files
            if file.name.startswith("work/")
        )

    def read_segments(self) -> Iterator[Columns]:
        for file in self._segment_files:
            yield from read_words(self._run.storage, self._run.path(file.name), file.sha256)

    def figures(self) -> dict[str, int]:
        return {
            "words": self.words.words,
            "symbols": self.words.symbols,
            "pairs": self._pairs,
            "segments": self.segments.words,
            "segment_symbols": self.segments.symbols,
            "shuffled_bytes": self._shuffled,
        }


@dataclass(frozen=True)
class RoundLearner:
    """Learns from the results of rounds, each within some bytes of `memory`."""

    recipe: BpeRecipe | WordPieceRecipe
    manifest: CountsManifest
    memory: int

    @property
    def minimum_count(self) -> int:
        return max(1, self.recipe.min_frequency)

    @property
    def room(self) -> Room:
        """The limits of the trainer."""
        return Room(self.memory)

    @property
    def by_count(self) -> bool:
        """Whether the most frequent pair is merged first."""
        return isinstance(self.recipe, BpeRecipe)

    def learn(self, vocabulary: Vocabulary, result: RoundResult) -> tuple[NewMerges, int, str]:
        """Return a round's merges, the minimum count that they cover, and their source in words."""
        floor = floor_of(result.task, result.words, result.shards)
        if floor is None:
            words = rounds.gather(result.read_segments())
            merges = rounds.learn_round(vocabulary, words, self.minimum_count, cut=False)
            return merges, self.minimum_count, "all words"
        if not self.by_count:
            return self._learn_by_likelihood(vocabulary, result, floor), floor, "segments"
        fitting = self._fitting_segments(vocabulary, result, floor)
        if fitting is not None:
            segments, floor = fitting
            return rounds.learn_round(vocabulary, segments, floor, cut=True), floor, "segments"
        return self._learn_batch(vocabulary, result), result.best_count, "the best pairs"

    def _fitting_segments(
        self, vocabulary: Vocabulary, result: RoundResult, floor: int
    ) -> tuple[WordSymbols, int] | None:
        """Return segments that fit the memory, and the minimum count of a pair that they cover."""
        if floor > result.best_count >= self.minimum_count:
            return None  # more pairs tie for the best than are listed
        if self.room.fits(result.segments):
            return rounds.gather(result.read_segments()), floor
        frequent = rounds.FrequentPairs(*read_frequent(result.task, result.shards, floor))
        limited = self.recipe.max_token_length is not None
        widths = np.array(vocabulary.widths, np.uint32) if limited else None
        return rounds.cut_to_fit(result.read_segments, frequent, floor, self.room, widths)

    def _learn_by_likelihood(
        self, vocabulary: Vocabulary, result: RoundResult, floor: int
    ) -> NewMerges:
        """Return all merges of a WordPiece training, whose score needs all segments at once."""
        if floor > self.minimum_count:
            raise _unproven(
                f"a round can list the pairs that occur at least {floor:,} times, and "
                f"{{min_frequency}} is {self.minimum_count:,}"
            )
        if not self.room.fits(result.segments):
            raise self._too_many_segments(result)
        merges = rounds.learn_round(
            vocabulary, rounds.gather(result.read_segments()), floor, cut=True
        )
        if not merges.at_end:
            raise _unproven("a token is made in two ways, since words contain the prefix")
        return merges

    def _learn_batch(self, vocabulary: Vocabulary, result: RoundResult) -> NewMerges:
        """Return the longest run of best pairs that cannot affect one another."""
        best, complete = read_best(result.task, result.best, vocabulary.ranks())
        enough = best[2] >= self.minimum_count
        lefts, rights, counts = best[0][enough], best[1][enough], best[2][enough]
        independent = rounds.plain_batch(
            lefts, rights, counts,
            tie_break=self.recipe.tie_break,
            joined=vocabulary.joined,
            known=vocabulary,
            complete=complete,
        )  # fmt: skip
        rows = []
        next_id = len(vocabulary.tokens)
        text_left = vocabulary.text_left
        pairs = zip(lefts[:independent].tolist(), rights[:independent].tolist(), strict=True)
        for left, right in pairs:
            text_left -= vocabulary.text_of(left, right)
            if text_left < 0:
                break
            known = vocabulary.find(left, right)
            rows.append((left, right, next_id if known is None else known))
            next_id += known is None
            if next_id - len(vocabulary.tokens) == vocabulary.room:
                break
        merged_counts = counts[: len(rows)].tolist()
        # In a run of equal symbols the occurrences of their pair overlap, so its count does not say
        # how many tokens are joined.
        joined = None if any(left == right for left, right, _ in rows) else sum(merged_counts)
        return NewMerges(
            rows, merged_counts, at_end=not rows, text_full=text_left < 0, joined=joined
        )

    def _too_many_segments(self, result: RoundResult) -> UsageError:
        segments, minimum = result.segments, self.minimum_count
        maximum = self.room.positions
        if segments.positions > maximum:
            return UsageError(
                f"must be higher to train a wordpiece model in merge rounds, got {minimum:,}: the "
                f"segments of pairs that occur so often have {segments.positions:,} symbols and "
                f"words in total, and one trainer can process {maximum:,}",
                ("min_frequency",),
                "give a higher one, or {model} prefix_bpe, which merge rounds can train",
            )
        manifest = self.manifest
        whole = memory_needed(manifest.word_bytes, manifest.unique_words, self.recipe)
        return UsageError(
            f"must be about {DRIVER_SHARE * segments.memory / 1e6:,.1f} MB to train a wordpiece "
            f"model in merge rounds, got {DRIVER_SHARE * self.memory / 1e6:,.1f} MB: the segments "
            f"of pairs that occur at least {minimum:,} times are scored together",
            ("driver_memory",),
            f"give that much; or {{merge_rounds}} local and {whole / 1e6:,.1f} MB; or a higher "
            "{min_frequency}; or {model} prefix_bpe, which merge rounds can train",
        )


def _unproven(why: str) -> UsageError:
    return UsageError(
        f"merge rounds cannot train a wordpiece model on these words: {why}",
        remedy="give {merge_rounds} local, with as much {driver_memory} as it asks for",
    )

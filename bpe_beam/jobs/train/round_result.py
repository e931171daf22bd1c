"""The result of a merge round, as the receipts of its tasks record it."""

from __future__ import annotations

from collections.abc import Iterator

from bpe_beam.counts.packed_words import Columns, read_words
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.workers.rounds.blocks import require_all
from bpe_beam.workers.rounds.task import (
    PairShard,
    RoundTask,
    SegmentedStats,
    SegmentStats,
    WordBatch,
    size_of,
)
from bpe_beam.workers.split_task import task_name


def task_names(kind: str, count: int) -> list[str]:
    """Return the names of all tasks of a kind."""
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
        """Yield the segments, a batch at a time."""
        for file in self._segment_files:
            yield from read_words(self._run.storage, self._run.path(file.name), file.sha256)

    def figures(self) -> dict[str, int]:
        """Return the figures of the summary."""
        return {
            "words": self.words.words,
            "symbols": self.words.symbols,
            "pairs": self._pairs,
            "segments": self.segments.words,
            "segment_symbols": self.segments.symbols,
            "shuffled_bytes": self._shuffled,
        }

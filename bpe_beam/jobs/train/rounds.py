"""Training in rounds: words stay on storage; workers count pairs and cut words into segments, from
which the driver learns.

A round is one run of the steps of `engines/merge_round.py`; `training/merges/rounds.py` says which
merges its result allows. The driver has in memory the vocabulary and the segments of one round.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import starmap
from typing import Any

import numpy as np
from msgspec import structs

from bpe_beam.counts.packed_words import Columns, read_words
from bpe_beam.engines.merge_round import merge_round, see_parts
from bpe_beam.engines.run import run_steps
from bpe_beam.engines.runner_errors import our_error
from bpe_beam.engines.steps import Steps
from bpe_beam.errors import UsageError
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.jobs.train.commits import Commit, RoundsFolder, first_slices
from bpe_beam.jobs.train.plan import PlannedCounts
from bpe_beam.progress import Progress, Stage
from bpe_beam.settings.common import RunSettings
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges import trainer_memory
from bpe_beam.training.merges.initial_vocabulary import (
    InitialVocabulary,
    begin_vocabulary,
    needs_seen,
)
from bpe_beam.training.merges.native_trainer import (
    NewMerges,
    TrainingResult,
    Vocabulary,
    WordTotals,
)
from bpe_beam.training.merges.rounds import (
    DIVISOR,
    FrequentPairs,
    batches_of,
    cut_to_fit,
    gather,
    learn_round,
    next_divisor,
    plain_batch,
)
from bpe_beam.training.merges.seen_symbols import SeenSymbols, ambiguous_tokens
from bpe_beam.training.merges.symbols import WordSymbols
from bpe_beam.training.merges.trainer_memory import DRIVER_SHARE, Room
from bpe_beam.training.merges.words import memory_needed
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.workers.measured import Measured
from bpe_beam.workers.rounds.merge_steps import (
    floor_of,
    forget_round,
    read_best,
    read_frequent,
    require_all,
)
from bpe_beam.workers.rounds.task import (
    ROUND_FILE,
    PairShard,
    RoundFile,
    RoundTask,
    SegmentedStats,
    SegmentStats,
    WordBatch,
    WordBatchTask,
    seen_file,
    size_of,
)
from bpe_beam.workers.split_task import task_name

_ALL_PAIRS = 1 << 62
"""A divisor that puts the threshold below every count."""

_MARGIN = 4
"""A round lists pairs down to its expected threshold divided by this."""


@dataclass
class RoundsJob:
    """A training in rounds.

    Attributes:
        run: How the steps of a round run.
        folder: The folder of words and commits.
        counts: The counts folder.
        base_tokenizer: The tokenizer to continue, if any.
        memory: The bytes that one round may hold.
        measured: Gets the metrics of the rounds.
        jobs: The number of pipelines that were launched.
    """

    run: RunSettings
    folder: RoundsFolder
    counts: PlannedCounts
    recipe: BpeRecipe | WordPieceRecipe
    base_tokenizer: Tokenizer | None
    memory: int
    measured: Measured
    jobs: int = field(default=0, init=False)
    _start_sha256: str = field(default="", init=False)

    @property
    def _storage(self) -> Storage:
        return self.folder.storage

    @property
    def _least(self) -> int:
        """The least count of a pair that is merged."""
        return max(1, self.recipe.min_frequency)

    @property
    def _room(self) -> Room:
        return Room(self.memory, trainer_memory.MAX_POSITIONS)

    @property
    def _by_count(self) -> bool:
        return isinstance(self.recipe, BpeRecipe)

    def learn(self, progress: Progress) -> tuple[TrainingResult, Commit]:
        """Train from the last commit to the last merge; return the vocabulary and last commit."""
        with progress.stage("learn", None, "rounds") as stage:
            commit = self.folder.latest()
            if commit is None:
                self._write_start(stage)
            vocabulary = Vocabulary(self._read_start(), self.recipe)
            if commit is None:  # the words are those of the counts
                commit = Commit(
                    known=len(vocabulary.tokens),
                    floor=self._least,
                    divisor=DIVISOR,
                    done=vocabulary.room == 0,
                    start=self._start_sha256,
                )
            vocabulary.add(commit.rows, commit.counts)
            vocabulary.text_full = commit.text_full
            vocabulary.totals = commit.totals
            target = len(commit.rows) + vocabulary.room
            stage.advance(commit.number, merges=len(commit.rows))
            while not commit.done:
                before = len(commit.rows)
                commit = self._round(vocabulary, commit, stage)
                self.folder.commit(commit)
                merges = len(commit.rows)
                stage.advance(1)
                stage.put(merges=merges, merges_of_last_round=merges - before)
                left = 0 if commit.done else _rounds_left(before, merges, target)
                stage.total = commit.number + left
        return vocabulary.result(), commit

    # ---- before the first round ----

    def _read_start(self) -> InitialVocabulary:
        data = self._storage.read_bytes(self.folder.start)
        self._start_sha256 = hashlib.sha256(data).hexdigest()
        return InitialVocabulary.from_bytes(data, self.folder.start)

    def _write_start(self, stage: Stage) -> None:
        """Write the initial vocabulary, by which words become symbols."""
        base = self.base_tokenizer
        seen = self._find_symbols(stage) if needs_seen(self.recipe, base) else None
        start = begin_vocabulary(self.recipe, seen, base)
        self._storage.write_bytes(self.folder.start, start.to_bytes())

    def _find_symbols(self, stage: Stage) -> SeenSymbols:
        """Have workers find the symbols of all words."""
        run = self.folder.new_run()
        task = self._task(run, 0, self._least, DIVISOR, round_sha256="")
        parts = len(self.counts.manifest.parts)
        names = _task_names("seen", parts)
        self._run_steps(
            "See", lambda engine: see_parts(engine, task, self.recipe), parts, run, stage, names
        )
        urls = [run.path(seen_file(part, parts)) for part in range(parts)]
        read = (SeenSymbols.from_bytes(self._storage.read_bytes(url), url) for url in urls)
        seen = reduce(SeenSymbols.merged, read)
        run.remove_run()
        return seen

    # ---- a round ----

    def _round(self, vocabulary: Vocabulary, last: Commit, stage: Stage) -> Commit:
        """Run a round, and add its merges to the vocabulary; return its commit."""
        started = time.monotonic()
        run = self.folder.new_run()
        round_sha256 = self._write_round_file(run, vocabulary, last)
        tasks = self._word_batch_tasks(last)
        task = self._task(run, len(tasks), last.floor, last.divisor, round_sha256)
        names = [name for kind in ("words", "cut") for name in _task_names(kind, len(tasks))]
        receipts = self._run_steps(
            "Round", lambda engine: merge_round(engine, task, tasks), len(tasks), run, stage, names
        )
        result = _RoundResult(run, task, receipts)
        if last.number == 0 and result.weight >= 2**63:
            raise OverflowError(
                f"the words have {result.weight:,} symbols, each word weighted by its count: that "
                "is beyond 64 bits"
            )
        learning_started = time.monotonic()
        merges, threshold, learned_from = self._learn(vocabulary, result)
        known = len(vocabulary.tokens)
        vocabulary.add(merges.rows, merges.counts)
        vocabulary.text_full = merges.text_full
        singles = last.singles + result.singles
        vocabulary.totals = _totals(last, result, result.weight + singles, merges.joined)
        ended = result.most < self._least or (merges.at_end and threshold <= self._least)
        floor = threshold if merges.rows else min(threshold, result.most)
        now = time.monotonic()
        figures = {
            "round": last.number + 1,
            "merges": len(merges.rows),
            "learned_from": learned_from,
            "threshold": threshold,
            **result.figures(),
            "seconds": round(now - started, 3),
            "learning_seconds": round(now - learning_started, 3),
        }
        return Commit(
            number=last.number + 1,
            run=run.name,
            word_batches=result.word_batches,
            rows=list(vocabulary.rows),
            counts=list(vocabulary.counts),
            known=known,
            applied=len(last.rows),
            floor=max(self._least, floor // (last.divisor * _MARGIN)),
            divisor=next_divisor(last.divisor, result.segments, self._room),
            done=ended or merges.text_full or vocabulary.room == 0,
            text_full=merges.text_full,
            totals=vocabulary.totals,
            singles=singles,
            history=[*last.history, figures],
            start=self._start_sha256,
        )

    def _learn(self, vocabulary: Vocabulary, result: _RoundResult) -> tuple[NewMerges, int, str]:
        """Return a round's merges, the least count that they cover, and their source in words."""
        floor = floor_of(result.task, result.words, result.shards)
        if floor is None:
            words = gather(result.read_segments())
            merges = learn_round(vocabulary, words, self._least, cut=False)
            return merges, self._least, "all words"
        if not self._by_count:
            return self._learn_by_likelihood(vocabulary, result, floor), floor, "segments"
        fitting = self._fitting_segments(vocabulary, result, floor)
        if fitting is not None:
            segments, floor = fitting
            return learn_round(vocabulary, segments, floor, cut=True), floor, "segments"
        return self._learn_batch(vocabulary, result), result.most, "the best pairs"

    def _fitting_segments(
        self, vocabulary: Vocabulary, result: _RoundResult, floor: int
    ) -> tuple[WordSymbols, int] | None:
        """Return segments that fit the memory, and the least count of a pair that they cover."""
        if floor > result.most >= self._least:
            return None  # more pairs tie for the best than are listed
        if self._room.fits(result.segments):
            return gather(result.read_segments()), floor
        frequent = FrequentPairs(*read_frequent(result.task, result.shards, floor))
        limited = self.recipe.max_token_length is not None
        widths = np.array(vocabulary.widths, np.uint32) if limited else None
        return cut_to_fit(result.read_segments, frequent, floor, self._room, widths)

    def _learn_by_likelihood(
        self, vocabulary: Vocabulary, result: _RoundResult, floor: int
    ) -> NewMerges:
        """Return all merges of a WordPiece training, whose score needs all segments at once."""
        if floor > self._least:
            raise _unproven(
                f"a round can list the pairs that occur at least {floor:,} times, and "
                f"{{min_frequency}} is {self._least:,}"
            )
        if not self._room.fits(result.segments):
            raise self._too_many_segments(result)
        merges = learn_round(vocabulary, gather(result.read_segments()), floor, cut=True)
        if not merges.at_end:
            raise _unproven("a token is made in two ways, since words contain the prefix")
        return merges

    def _learn_batch(self, vocabulary: Vocabulary, result: _RoundResult) -> NewMerges:
        """Return the longest run of best pairs that cannot affect one another."""
        best, complete = read_best(result.task, result.best, vocabulary.ranks())
        enough = best[2] >= self._least
        lefts, rights, counts = best[0][enough], best[1][enough], best[2][enough]
        independent = plain_batch(
            lefts, rights, counts,
            tie_break=self.recipe.tie_break,
            joined=vocabulary.joined,
            known=vocabulary,
            complete=complete,
        )  # fmt: skip
        rows = []
        made = len(vocabulary.tokens)
        text_left = vocabulary.text_left
        pairs = zip(lefts[:independent].tolist(), rights[:independent].tolist(), strict=True)
        for left, right in pairs:
            text_left -= vocabulary.text_of(left, right)
            if text_left < 0:
                break
            known = vocabulary.find(left, right)
            rows.append((left, right, made if known is None else known))
            made += known is None
            if made - len(vocabulary.tokens) == vocabulary.room:
                break
        found = counts[: len(rows)].tolist()
        # In a run of equal symbols the occurrences of their pair overlap, so its count does not say
        # how many tokens are joined.
        joined = None if any(left == right for left, right, _ in rows) else sum(found)
        return NewMerges(rows, found, at_end=not rows, text_full=text_left < 0, joined=joined)

    def _too_many_segments(self, result: _RoundResult) -> UsageError:
        segments, least, most = result.segments, self._least, self._room.positions
        if segments.positions > most:
            return UsageError(
                f"must be higher to train a wordpiece model in merge rounds, got {least:,}: the "
                f"segments of pairs that occur so often have {segments.positions:,} symbols and "
                f"words in total, and one trainer can process {most:,}",
                ("min_frequency",),
                "give a higher one, or {model} prefix_bpe, which merge rounds can train",
            )
        manifest = self.counts.manifest
        whole = memory_needed(manifest.word_bytes, manifest.unique_words, self.recipe.vocab_size)
        return UsageError(
            f"must be about {DRIVER_SHARE * segments.memory / 1e6:,.1f} MB to train a wordpiece "
            f"model in merge rounds, got {DRIVER_SHARE * self.memory / 1e6:,.1f} MB: the segments "
            f"of pairs that occur at least {least:,} times are scored together",
            ("driver_memory",),
            f"give that much; or {{merge_rounds}} local and {whole / 1e6:,.1f} MB; or a higher "
            "{min_frequency}; or {model} prefix_bpe, which merge rounds can train",
        )

    # ---- tasks ----

    def _task(
        self, run: RunFolder, word_batches: int, floor: int, divisor: int, round_sha256: str
    ) -> RoundTask:
        return RoundTask(
            folder=run.for_workers(),
            counts=self.counts.url,
            manifest=structs.replace(self.counts.manifest, inputs=()),
            factors=self.counts.factors,
            start=(self.folder.start, self._start_sha256),
            round_file_sha256=round_sha256,
            word_batches=word_batches,
            floor=floor,
            divisor=divisor if self._by_count else _ALL_PAIRS,
            room=self._room,
            singles=not self._by_count,
            ambiguous=ambiguous_tokens(self.recipe, self.base_tokenizer),
        )

    def _write_round_file(self, run: RunFolder, vocabulary: Vocabulary, last: Commit) -> str:
        """Write the merges that the round applies; return the file's SHA-256."""
        limit = self.recipe.max_token_length
        file = RoundFile(
            batches_of(last.rows[last.applied :], last.known),
            vocabulary.ranks(),
            None if limit is None else np.array(vocabulary.widths, np.uint32),
            limit,
        )
        data = file.to_bytes()
        self._storage.write_bytes(run.path(ROUND_FILE), data)
        return hashlib.sha256(data).hexdigest()

    def _word_batch_tasks(self, last: Commit) -> list[WordBatchTask]:
        if last.number == 0:
            return list(starmap(WordBatchTask, enumerate(first_slices(self.counts.manifest))))
        run = self.folder.run(last.run)
        return [
            WordBatchTask(number, file=(run.path(words.name), words.sha256))
            for number, words in enumerate(last.word_batches)
        ]

    def _run_steps(
        self, label: str, steps: Steps, tasks: int, run: RunFolder, stage: Stage, names: list[str]
    ) -> dict[str, Receipt]:
        """Run steps to their end, show how many tasks are finished, and return all receipts."""
        self.jobs += 1
        stage.put(pieces=0, pieces_in_round=len(names))

        def watch() -> None:
            stage.at_least(0, pieces=len(set(run.finished_tasks()).intersection(names)))

        try:
            run_steps(self.run, label, steps, tasks, self.measured, watch, min_ram="2GB")
        except Exception as error:
            found = our_error(error)  # a worker's, which Beam wraps in one of its own
            if isinstance(found, UsageError):
                raise found from error
            raise
        finally:
            forget_round()  # workers that are threads of this process have its values in memory
        return run.all_receipts(names)


def _unproven(why: str) -> UsageError:
    return UsageError(
        f"merge rounds cannot train a wordpiece model on these words: {why}",
        remedy="give {merge_rounds} local, with as much {driver_memory} as it asks for",
    )


def _task_names(kind: str, count: int) -> list[str]:
    return [task_name(kind, number, count) for number in range(count)]


def _totals(
    last: Commit, result: _RoundResult, tokens: int, joined: int | None
) -> WordTotals | None:
    """Return the totals after a round, whose merges join tokens; None: not known how many."""
    left = None if joined is None else tokens - joined
    if last.number == 0:
        return WordTotals(result.all_words, result.all_bytes, tokens, left)
    return None if last.totals is None else replace(last.totals, tokens=left)


def _rounds_left(before: int, now: int, target: int) -> int:
    """Return about how many rounds are left to so many merges, if each multiplies them alike."""
    growth = now / before if before else 3.0
    return max(1, math.ceil(math.log(max(target, 2) / max(now, 1)) / math.log(max(growth, 1.2))))


class _RoundResult:
    """The result of a round, as its receipts record it."""

    def __init__(self, run: RunFolder, task: RoundTask, receipts: dict[str, Receipt]) -> None:
        self._run = run
        self.task = task

        def of_kind(kind: str, count: int) -> list[Receipt]:
            # Shards without content have no receipt.
            return [receipts[name] for name in _task_names(kind, count) if name in receipts]

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
        self.most = max((shard.most for shard in self.shards), default=0)
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

    def figures(self) -> dict[str, Any]:
        """Return the figures of the summary."""
        return {
            "words": self.words.words,
            "symbols": self.words.symbols,
            "pairs": self._pairs,
            "segments": self.segments.words,
            "segment_symbols": self.segments.symbols,
            "shuffled_bytes": self._shuffled,
        }

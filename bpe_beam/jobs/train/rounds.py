"""Learning in rounds: the words stay on storage, workers count and cut, the driver learns.

The loop launches one pipeline a round, see `transforms/jobs/merge_round.py`, and takes its result
as `training/rounds.py` says. The driver holds the vocabulary, and the segments of one round in
what `driver_memory` leaves.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from itertools import starmap
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.packed_words import Columns, read_words
from bpe_beam.engines.beam import MakeTransform, run_pipeline
from bpe_beam.engines.runner_errors import our_error
from bpe_beam.errors import UsageError
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.jobs.train.commits import Commit, RoundsFolder, first_sources, remove_run
from bpe_beam.progress import Progress, Stage
from bpe_beam.settings.common import RunSettings
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.initial_vocabulary import InitialVocabulary, begin_vocabulary, needs_seen
from bpe_beam.training.merge_batches import plain_batch
from bpe_beam.training.native_trainer import Learned, WordTotals
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.training.rounds import (
    DIVISOR,
    Round,
    ShardPairs,
    Vocabulary,
    batches_of,
    learn_round,
    next_divisor,
)
from bpe_beam.training.seen_symbols import SeenSymbols
from bpe_beam.training.segments import FrequentPairs, cut_to_fit, gather
from bpe_beam.training.special_token_conflicts import ambiguous_tokens
from bpe_beam.training.trainer_limits import DRIVER_SHARE, Room, has_spans, most_positions
from bpe_beam.training.words import memory_needed
from bpe_beam.workers.rounds.segment_words import (
    floor_of,
    read_best,
    read_hot,
    require_all,
)
from bpe_beam.workers.rounds.task import (
    ROUND_FILE,
    RoundCache,
    RoundFile,
    RoundTask,
    seen_file,
)
from bpe_beam.workers.rounds.word_batches import (
    FileSource,
    PairStats,
    SegmentedStats,
    SegmentStats,
    WordBatch,
    WordBatchStats,
    WordBatchTask,
    size_of,
)
from bpe_beam.workers.split_task import task_name

if TYPE_CHECKING:
    from bpe_beam.transforms.metrics import Measured

_UNCUT = 1 << 62
_LOOK_FURTHER = 4


@dataclass
class RoundsJob:
    """Everything that the loop needs.

    Attributes:
        storage: The door to storage.
        run: How pipelines run.
        folder: Where words and commits stand.
        counts: The counts folder.
        manifest: Its manifest.
        factors: What the counts of each source are multiplied by; None: as they are.
        recipe: What is learned.
        old: The tokenizer that is continued, if any.
        memory: What the learner may hold, in bytes.
        measured: Gets what pipelines measured.
        looks_further: Cut segments; without, each round takes a plain batch, to measure by.
    """

    storage: Storage
    run: RunSettings
    folder: RoundsFolder
    counts: str
    manifest: CountsManifest
    factors: Mapping[str, int] | None
    recipe: BpeRecipe | WordPieceRecipe
    old: Tokenizer | None
    memory: int
    measured: Measured
    looks_further: bool = True
    jobs: int = field(default=0, init=False)
    _spelling: str = field(default="", init=False)

    @property
    def _least(self) -> int:
        return max(1, self.recipe.min_frequency)

    @property
    def _room(self) -> Room:
        limited = self.recipe.max_token_length is not None
        with_spans = has_spans(self.recipe, continued=self.old is not None, widths=limited)
        return Room(self.memory, most_positions(with_spans))

    @property
    def _by_count(self) -> bool:
        return isinstance(self.recipe, BpeRecipe)

    def learn(self, progress: Progress) -> tuple[Learned, Commit]:
        """Learns, from the last commit on.

        Raises:
            UsageError: What the words do not allow, or not in so little memory.
            DataError: Storage or the runner fails.
            OverflowError: Counts whose sum is beyond 64 bits.
        """
        with progress.stage("learn", None, "rounds") as stage:
            commit = self.folder.latest()
            start = self._start(stage, begun=commit is not None)
            vocabulary = Vocabulary(start, self.recipe)
            if commit is None:
                commit = self._begin(vocabulary)
            vocabulary.add(commit.rows, commit.counts)
            vocabulary.text_full = commit.text_full
            if commit.totals is not None:
                vocabulary.totals = WordTotals(**commit.totals)
            target = len(commit.rows) + vocabulary.room
            stage.advance(commit.number, merges=len(commit.rows))
            while not commit.done:
                before = len(commit.rows)
                commit = self._round(vocabulary, commit, stage)
                self.folder.commit(commit)
                merges = len(commit.rows)
                stage.advance(1)
                stage.put(merges=merges, merges_of_last_round=merges - before)
                stage.total = commit.number + rounds_left(before, merges, target, commit.done)
        return vocabulary.learned(), commit

    # ---- the first words ----

    def _start(self, stage: Stage, *, begun: bool) -> InitialVocabulary:
        if begun:
            data = self.storage.read_bytes(self.folder.start)
            self._spelling = hashlib.sha256(data).hexdigest()
            return InitialVocabulary.from_bytes(data, self.folder.start)
        seen = self._see(stage) if needs_seen(self.recipe, self.old) else None
        start = begin_vocabulary(self.recipe, seen, self.old)
        data = start.to_bytes()
        self._spelling = hashlib.sha256(data).hexdigest()
        self.storage.write_bytes(self.folder.start, data)
        return start

    def _see(self, stage: Stage) -> SeenSymbols:
        """What the words are made of, seen on the workers."""
        from bpe_beam.transforms.jobs.merge_round import SeeParts

        run = self.folder.new_run()
        task = self._task(run, 0, self._least, DIVISOR, given="")
        parts = len(self.manifest.parts)
        names = _task_names("seen", parts)
        self._launch("See", lambda pool: SeeParts(task, self.recipe), parts, run, stage, names)
        run.all_receipts(names)
        urls = [run.path(seen_file(part, parts)) for part in range(parts)]
        read = (SeenSymbols.from_bytes(self.storage.read_bytes(url), url) for url in urls)
        seen = reduce(SeenSymbols.merged, read)
        remove_run(run)
        return seen

    def _begin(self, vocabulary: Vocabulary) -> Commit:
        """Before the first round: nothing is committed yet, and the words are the counts'."""
        return Commit(
            number=0,
            run="",
            word_batches=[],
            rows=[],
            counts=[],
            known=len(vocabulary.tokens),
            applied=0,
            floor=self._least,
            divisor=DIVISOR,
            done=vocabulary.room == 0,
            history=[],
            start=self._spelling,
        )

    # ---- a round ----

    def _round(self, vocabulary: Vocabulary, last: Commit, stage: Stage) -> Commit:
        from bpe_beam.transforms.jobs.merge_round import MergeRound

        started = time.monotonic()
        run = self.folder.new_run()
        given = self._write_round_file(run, vocabulary, last)
        tasks = self._tasks(last)
        task = self._task(run, len(tasks), last.floor, last.divisor, given)
        kinds = ("words", "cut") if task.cuts else ("words",)
        names = [name for kind in kinds for name in _task_names(kind, task.word_batches)]
        self._launch("Round", lambda pool: MergeRound(task, tasks), len(tasks), run, stage, names)
        came = _RoundResult(self, run, task, run.all_receipts(names))
        if last.number == 0 and came.weight >= 2**63:
            raise OverflowError("the words' symbols are beyond 64 bits")
        learned = time.monotonic()
        taken, threshold, how = self._take(vocabulary, task, came)
        known = len(vocabulary.tokens)
        vocabulary.add(taken.rows, taken.counts)
        vocabulary.text_full = taken.text_full
        singles = last.singles + came.singles
        totals = _totals(last, came, came.weight + singles, taken.joined)
        vocabulary.totals = None if totals is None else WordTotals(**totals)
        ended = came.most < self._least or (taken.at_end and threshold <= self._least)
        now = time.monotonic()
        floor = threshold if taken.rows else min(threshold, came.most)
        facts = {
            "round": last.number + 1,
            "merges": len(taken.rows),
            "learned_from": how,
            "threshold": threshold,
            **came.facts(),
            "seconds": round(now - started, 3),
            "learning_seconds": round(now - learned, 3),
        }
        return Commit(
            number=last.number + 1,
            run=run.name,
            word_batches=came.word_batches,
            rows=list(vocabulary.rows),
            counts=list(vocabulary.counts),
            known=known,
            applied=len(last.rows),
            floor=max(self._least, floor // (last.divisor * _LOOK_FURTHER)),
            divisor=next_divisor(last.divisor, came.segments, self._room),
            done=ended or taken.text_full or vocabulary.room == 0,
            text_full=taken.text_full,
            totals=totals,
            singles=singles,
            history=[*last.history, facts],
            start=self._spelling,
        )

    def _take(
        self, vocabulary: Vocabulary, task: RoundTask, came: _RoundResult
    ) -> tuple[Round, int, str]:
        """The round's merges; the threshold down to which they are learned; and from what."""
        if not task.cuts:
            return self._plain(vocabulary, task, came), came.most, "the best pairs"
        floor = floor_of(task, came.words, came.shards)
        if floor is None:
            segments = gather(came.read_segments())
            taken = learn_round(vocabulary, segments, self._least, cut=False)
            return taken, self._least, "all words"
        if not self._by_count and floor > self._least:
            raise self._unproven("more pairs are frequent than a round can look at")
        if floor > came.most and came.most >= self._least:
            # More pairs tie for the best than are listed.
            return self._plain(vocabulary, task, came), came.most, "the best pairs"
        if task.room.holds(came.segments):
            taken = learn_round(vocabulary, gather(came.read_segments()), floor, cut=True)
            if not self._by_count and not taken.at_end:
                raise self._unproven("a token is made in two ways, since words hold the prefix")
            return taken, floor, "segments"
        if not self._by_count:
            raise self._too_little(came)
        frequent = FrequentPairs(*read_hot(task, came.hot, floor))
        limited = self.recipe.max_token_length is not None
        widths = np.array(vocabulary.widths, np.uint32) if limited else None
        found = cut_to_fit(came.read_segments, frequent, floor, task.room, widths)
        if found is not None:
            return learn_round(vocabulary, found[0], found[1], cut=True), found[1], "segments"
        return self._plain(vocabulary, task, came), came.most, "the best pairs"

    def _plain(self, vocabulary: Vocabulary, task: RoundTask, came: _RoundResult) -> Round:
        """The longest run of best pairs that cannot affect one another."""
        best, complete = read_best(task, came.best, vocabulary.ranks())
        enough = best[2] >= self._least
        lefts, rights, counts = best[0][enough], best[1][enough], best[2][enough]
        taken = plain_batch(
            lefts, rights, counts,
            tie_break=self.recipe.tie_break,
            joined=vocabulary.joined,
            known=vocabulary,
            complete=complete,
        )  # fmt: skip
        rows = []
        made = len(vocabulary.tokens)
        text_left = vocabulary.text_left
        for left, right in zip(lefts[:taken].tolist(), rights[:taken].tolist(), strict=True):
            text_left -= vocabulary.text_of(left, right)
            if text_left < 0:
                break
            known = vocabulary.find(left, right)
            rows.append((left, right, made if known is None else known))
            made += known is None
            if made - len(vocabulary.tokens) == vocabulary.room:
                break
        found = counts[: len(rows)].tolist()
        # Places of a pair of equal symbols overlap, in a run; those of others do not.
        joined = None if any(left == right for left, right, _ in rows) else sum(found)
        return Round(rows, found, at_end=not rows, text_full=text_left < 0, joined=joined)

    def _unproven(self, why: str) -> UsageError:
        return UsageError(
            f"the score of WordPiece cannot be proved in rounds for these words: {why}; give "
            "--merge-rounds local, with as much --driver-memory as it asks for"
        )

    def _too_little(self, came: _RoundResult) -> UsageError:
        if came.segments.positions > self._room.positions:
            return UsageError(
                "the score of WordPiece goes by all pairs of at least min_frequency "
                f"({self._least:,}) at once, and what is left of the words when they are cut at "
                f"all rarer ones has {came.segments.positions:,} symbols and words; one learner "
                f"holds {self._room.positions:,}: give a higher --min-frequency, or --model "
                "prefix_bpe, which can be learned in rounds"
            )
        needed = DRIVER_SHARE * came.segments.memory
        manifest = self.manifest
        whole = memory_needed(manifest.word_bytes, manifest.unique_words, self.recipe.vocab_size)
        return UsageError(
            "the score of WordPiece goes by all pairs of at least min_frequency "
            f"({self._least:,}) at once, and what is left of the words when they are cut at all "
            f"rarer ones needs about {needed / 1e6:,.1f} MB of --driver-memory, part of it for "
            "Beam and Python beside them (all words, with --merge-rounds local, which needs no "
            f"Beam, about {whole / 1e6:,.1f} MB): give the smaller of them, a "
            "higher --min-frequency, or --model prefix_bpe, which can be learned in rounds"
        )

    # ---- pipelines ----

    def _task(
        self, run: RunFolder, word_batches: int, floor: int, divisor: int, given: str
    ) -> RoundTask:
        return RoundTask(
            folder=run.for_workers(),
            counts=self.counts,
            manifest=replace(self.manifest, inputs=()),
            factors=self.factors,
            start=(self.folder.start, self._spelling),
            given=given,
            word_batches=word_batches,
            floor=floor,
            divisor=divisor if self._by_count else _UNCUT,
            room=self._room,
            singles=not self._by_count,
            ambiguous=ambiguous_tokens(self.recipe, self.old),
            cuts=self.looks_further,
        )

    def _write_round_file(self, run: RunFolder, vocabulary: Vocabulary, last: Commit) -> str:
        """Writes what the round applies; gives its SHA-256."""
        limit = self.recipe.max_token_length
        given = RoundFile(
            batches_of(last.rows[last.applied :], last.known),
            vocabulary.ranks(),
            None if limit is None else np.array(vocabulary.widths, np.uint32),
            limit,
        )
        data = given.to_bytes()
        self.storage.write_bytes(run.path(ROUND_FILE), data)
        return hashlib.sha256(data).hexdigest()

    def _tasks(self, last: Commit) -> list[WordBatchTask]:
        if last.number == 0:
            return list(starmap(WordBatchTask, enumerate(first_sources(self.manifest))))
        files = [word_batch.file for word_batch in last.word_batches]
        return [
            WordBatchTask(number, FileSource(self.folder.run_url(last.run, file.name), file.sha256))
            for number, file in enumerate(files)
        ]

    def _launch(
        self,
        label: str,
        make: MakeTransform,
        tasks: int,
        run: RunFolder,
        stage: Stage,
        names: list[str],
    ) -> None:
        """Run a pipeline to its end, and show how many of the named tasks are finished."""
        self.jobs += 1
        stage.put(pieces=0, pieces_in_round=len(names))

        def watch() -> None:
            stage.seen(0, pieces=len(set(run.finished_tasks()).intersection(names)))

        try:
            run_pipeline(self.run, label, make, tasks, self.measured, watch)
        except Exception as error:
            found = our_error(error)  # a worker's, which Beam wraps in one of its own
            if isinstance(found, UsageError):
                raise found from error
            raise
        finally:
            for cache in RoundCache.every:  # by workers that are threads of this process
                cache.forget()


def _task_names(kind: str, count: int) -> list[str]:
    return [task_name(kind, number, count) for number in range(count)]


def _totals(
    last: Commit, came: _RoundResult, tokens: int, joined: int | None
) -> dict[str, Any] | None:
    """The totals after a round, from those before it; `tokens`: before this round's merges."""
    left = None if joined is None else tokens - joined
    if last.number == 0:
        return asdict(WordTotals(came.all_words, came.all_bytes, tokens, left))
    return None if last.totals is None else {**last.totals, "tokens": left}


def rounds_left(before: int, now: int, target: int, done: bool) -> int:
    """How many rounds are left, about: each multiplies the merges as the last one did."""
    if done:
        return 0
    growth = now / before if before else 3.0
    return max(1, math.ceil(math.log(max(target, 2) / max(now, 1)) / math.log(max(growth, 1.2))))


class _RoundResult:
    """The result of a round's pipeline, by its receipts."""

    def __init__(
        self, job: RoundsJob, run: RunFolder, task: RoundTask, receipts: dict[str, Receipt]
    ) -> None:
        self._storage = job.storage
        self._run = run
        words = [receipts[name] for name in _task_names("words", task.word_batches)]
        cut = [receipts[name] for name in _task_names("cut", task.word_batches) if task.cuts]
        pairs = _shards(receipts, "pairs", task.shards)
        segments = _shards(receipts, "segments", task.shards)
        stats = [WordBatchStats.from_json(row.stats) for row in words]
        pair_stats = [PairStats(**cast(Any, row.stats)) for row in pairs]
        segment_stats = [SegmentStats(**cast(Any, row.stats)) for row in segments]
        cut_stats = [SegmentedStats(**cast(Any, row.stats)) for row in cut]
        require_all("pairs", (row.blocks for row in stats), (row.blocks for row in pair_stats))
        require_all(
            "segments", (row.blocks for row in cut_stats), (row.blocks for row in segment_stats)
        )
        self.word_batches = [
            WordBatch(row.files[0], each) for row, each in zip(words, stats, strict=True)
        ]
        self.words = size_of(stats)
        self.weight = sum(row.weight for row in stats)
        self.singles = sum(row.singles for row in stats)
        self.all_words = sum(row.all_words for row in stats)
        self.all_bytes = sum(row.all_bytes for row in stats)
        self.shards = [ShardPairs(row.floor, row.most) for row in pair_stats]
        self.most = max((shard.most for shard in self.shards), default=0)
        self.pairs = sum(row.pairs for row in pair_stats)
        self.hot, self.best = ([row.files[i] for row in pairs] for i in range(2))
        self.segments = size_of(segment_stats)
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
            yield from read_words(self._storage, self._run.path(file.name), file.sha256)

    def facts(self) -> dict[str, Any]:
        """Return the figures of the summary."""
        return {
            "words": self.words.words,
            "symbols": self.words.symbols,
            "pairs": self.pairs,
            "segments": self.segments.words,
            "segment_symbols": self.segments.symbols,
            "shuffled_bytes": self._shuffled,
        }


def _shards(receipts: Mapping[str, Receipt], kind: str, shards: int) -> list[Receipt]:
    """Return the receipts of those shards that hold anything, in order."""
    return [receipts[name] for name in _task_names(kind, shards) if name in receipts]

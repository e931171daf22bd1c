"""Training in rounds: words stay on storage; workers count pairs and cut words into segments, from
which the driver learns.

A round is one run of the steps of `merge_round`, over all word batches. Only block references
travel; see `workers/rounds/task.py`. `training/merges/rounds.py` says which merges its result
allows. The driver has in memory the vocabulary and the segments of one round.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import starmap
from typing import Any

import numpy as np
from msgspec import structs

from bpe_beam.engines.run import run_steps
from bpe_beam.engines.runner_errors import our_error
from bpe_beam.engines.steps import Collection, Engine, Steps
from bpe_beam.errors import UsageError
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.jobs.train.commits import Commit, RoundsFolder, first_slices
from bpe_beam.jobs.train.plan import PlannedCounts
from bpe_beam.jobs.train.round_learning import RoundLearner, RoundResult, task_names
from bpe_beam.progress import Progress, Stage
from bpe_beam.settings.common import RunSettings
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.initial_vocabulary import (
    InitialVocabulary,
    begin_vocabulary,
    needs_seen,
)
from bpe_beam.training.merges.native_trainer import TrainingResult, Vocabulary, WordTotals
from bpe_beam.training.merges.rounds import DIVISOR, batches_of, next_divisor
from bpe_beam.training.merges.symbols import SeenSymbols, ambiguous_tokens
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.training.unigram.segments import SegmentRules
from bpe_beam.workers.rounds import merge_steps
from bpe_beam.workers.rounds.merge_steps import Applied
from bpe_beam.workers.rounds.task import (
    ROUND_FILE,
    BlockReference,
    RoundFile,
    RoundTask,
    WordBatchTask,
    forget_round,
    seen_file,
)
from bpe_beam.workers.task_results import MetricSums, TaskResult

_ALL_PAIRS = 1 << 62  # a divisor that puts the threshold below every count

_MARGIN = 4  # a round lists pairs down to its expected threshold divided by this


@dataclass
class RoundsJob:
    """A training in rounds."""

    run: RunSettings
    folder: RoundsFolder
    counts: PlannedCounts
    recipe: BpeRecipe | WordPieceRecipe
    base_tokenizer: Tokenizer | None
    memory: int  # the bytes that one round may hold
    measured: MetricSums  # gets the metrics of the rounds
    segments: SegmentRules | None = None  # see `RoundTask`
    jobs: int = field(default=0, init=False)  # the number of pipelines that were launched
    _start_sha256: str = field(default="", init=False)

    @property
    def _learner(self) -> RoundLearner:
        return RoundLearner(self.recipe, self.counts.manifest, self.memory)

    def learn(self, progress: Progress) -> tuple[TrainingResult, Commit]:
        """Train from the last commit to the last merge; return the vocabulary and last commit."""
        with progress.stage("learn", None, "rounds") as stage:
            commit = self.folder.latest()
            if commit is None:
                self._write_start(stage)
            data = self.folder.storage.read_bytes(self.folder.start)
            self._start_sha256 = hashlib.sha256(data).hexdigest()
            start = InitialVocabulary.from_bytes(data, self.folder.start)
            vocabulary = Vocabulary(start, self.recipe)
            if commit is None:  # the words are in the counts
                commit = Commit(
                    known=len(vocabulary.tokens),
                    floor=self._learner.minimum_count,
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
                remaining = 0 if commit.done else _rounds_left(before, merges, target)
                stage.total = commit.number + remaining
        return vocabulary.result(), commit

    # ---- before the first round ----

    def _write_start(self, stage: Stage) -> None:
        """Write the initial vocabulary, by which words become symbols."""
        base = self.base_tokenizer
        # The characters of segments are in the recipe.
        needed = self.segments is None and needs_seen(self.recipe, base)
        seen = self.find_symbols(stage) if needed else None
        start = begin_vocabulary(self.recipe, seen, base)
        self.folder.storage.write_bytes(self.folder.start, start.to_bytes())

    def find_symbols(self, stage: Stage) -> SeenSymbols:
        """Return the symbols of all words of the counts."""
        run = self.folder.new_run()
        task = self._task(run, 0, self._learner.minimum_count, DIVISOR, round_sha256="")
        parts = len(self.counts.manifest.parts)
        names = task_names("seen", parts)
        self.run_steps(
            "See", lambda engine: see_parts(engine, task, self.recipe), parts, run, stage, names
        )
        urls = [run.path(seen_file(part, parts)) for part in range(parts)]
        read = (SeenSymbols.from_bytes(self.folder.storage.read_bytes(url), url) for url in urls)
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
        names = [name for kind in ("words", "cut") for name in task_names(kind, len(tasks))]
        receipts = self.run_steps(
            "Round", lambda engine: merge_round(engine, task, tasks), len(tasks), run, stage, names
        )
        result = RoundResult(run, task, receipts)
        if last.number == 0 and result.weight >= 2**63:
            raise OverflowError(
                f"the words have {result.weight:,} symbols, each word weighted by its count: that "
                "is beyond 64 bits"
            )
        learning_started = time.monotonic()
        merges, threshold, learned_from = self._learner.learn(vocabulary, result)
        known = len(vocabulary.tokens)
        vocabulary.add(merges.rows, merges.counts)
        vocabulary.text_full = merges.text_full
        singles = last.singles + result.singles
        vocabulary.totals = _totals(last, result, result.weight + singles, merges.joined)
        ended = result.best_count < self._learner.minimum_count or (
            merges.at_end and threshold <= self._learner.minimum_count
        )
        floor = threshold if merges.rows else min(threshold, result.best_count)
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
            floor=max(self._learner.minimum_count, floor // (last.divisor * _MARGIN)),
            divisor=next_divisor(last.divisor, result.segments, self._learner.room),
            done=ended or merges.text_full or vocabulary.room == 0,
            text_full=merges.text_full,
            totals=vocabulary.totals,
            singles=singles,
            history=[*last.history, figures],
            start=self._start_sha256,
        )

    # ---- tasks ----

    def _task(
        self, run: RunFolder, word_batches: int, floor: int, divisor: int, round_sha256: str
    ) -> RoundTask:
        return RoundTask(
            **self.of_words(run, word_batches),
            start=(self.folder.start, self._start_sha256),
            round_file_sha256=round_sha256,
            floor=floor,
            divisor=divisor if self._learner.by_count else _ALL_PAIRS,
            room=self._learner.room,
            singles=not self._learner.by_count,
            ambiguous=ambiguous_tokens(self.recipe, self.base_tokenizer),
            segments=self.segments,
        )

    def of_words(self, run: RunFolder, word_batches: int) -> dict[str, Any]:
        """Return the settings of a `WordsTask`."""
        return {
            "folder": run.for_workers(),
            "counts": self.counts.url,
            "manifest": structs.replace(self.counts.manifest, inputs=()),
            "factors": self.counts.factors,
            "word_batches": word_batches,
        }

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
        self.folder.storage.write_bytes(run.path(ROUND_FILE), data)
        return hashlib.sha256(data).hexdigest()

    def _word_batch_tasks(self, last: Commit) -> list[WordBatchTask]:
        if last.number == 0:
            return self.first_word_batches()
        run = self.folder.run(last.run)
        return [
            WordBatchTask(number, file=(run.path(words.file.name), words.file.sha256))
            for number, words in enumerate(last.word_batches)
        ]

    def first_word_batches(self) -> list[WordBatchTask]:
        """Return the word batches that are slices of the counts."""
        return list(starmap(WordBatchTask, enumerate(first_slices(self.counts.manifest))))

    def run_steps(
        self, label: str, steps: Steps, tasks: int, run: RunFolder, stage: Stage, names: list[str]
    ) -> dict[str, Receipt]:
        """Run steps to their end, show how many tasks are finished, and return all receipts."""
        self.jobs += 1
        stage.put(tasks=0, tasks_in_round=len(names))

        def watch() -> None:
            stage.at_least(0, tasks=len(set(run.finished_tasks()).intersection(names)))

        try:
            run_steps(self.run, label, steps, tasks, self.measured, watch, min_ram="2GB")
        except Exception as error:
            wrapped = our_error(error)  # Beam wraps the error of a worker
            if isinstance(wrapped, UsageError):
                raise wrapped from error
            raise
        finally:
            forget_round()  # workers that are threads of this process have its values in memory
        return run.all_receipts(names)


def _totals(last: Commit, result: RoundResult, tokens: int, joined: int | None) -> WordTotals:
    """Return the totals after a round, whose merges join `joined` tokens; None: unknown."""
    tokens_after = None if joined is None else tokens - joined
    if last.totals is None:
        return WordTotals(result.all_words, result.all_bytes, tokens, tokens_after)
    return structs.replace(last.totals, tokens=tokens_after)


def _rounds_left(before: int, now: int, target: int) -> int:
    """Estimate the rounds up to `target` merges, if each multiplies the merges as the last one."""
    growth = now / before if before else 3.0
    return max(1, math.ceil(math.log(max(target, 2) / max(now, 1)) / math.log(max(growth, 1.2))))


def merge_round(engine: Engine, task: RoundTask, tasks: Iterable[WordBatchTask]) -> Collection:
    """Apply merges to all word batches, count their pairs, cut their words and add segments up.

    The round waits twice: for the sums of all pairs before words are cut into segments, and for the
    sums of all segments at its end. Everything is written to the run's folder, with receipts.
    Returns the last tasks of the round, as texts.
    """
    texts = engine.tasks("WordBatches", [word_batch.to_json() for word_batch in tasks])
    apply_merges = partial(merge_steps.apply_merges, task)
    applied = engine.run("ApplyMerges", apply_merges, texts, Applied)
    word_batches = engine.run("WordBatch", _word_batch, applied, tuple[int, str])
    pairs = engine.run("PairBlocks", _pair_blocks, applied, tuple[int, BlockReference])
    gathered = engine.gather("GatherPairs", pairs)
    shards = engine.run("SumPairs", partial(merge_steps.sum_pairs, task), gathered, str)
    segments = engine.run(
        "SegmentWords",
        partial(merge_steps.segment_words, task),
        engine.gather("SpreadWordBatches", word_batches),
        tuple[int, BlockReference],
        word_batches,
        shards,
    )
    gathered = engine.gather("GatherSegments", segments)
    return engine.run("AddSegments", partial(merge_steps.add_segments, task), gathered, str)


def see_parts(engine: Engine, task: RoundTask, recipe: BpeRecipe | WordPieceRecipe) -> Collection:
    """Find the symbols of the words of each part of the counts; return the parts' numbers."""
    parts = engine.tasks("Parts", map(str, range(len(task.manifest.parts))))
    return engine.run("See", partial(merge_steps.see_part, task, recipe), parts, str)


def _word_batch(element: Applied) -> TaskResult:
    return TaskResult([element[:2]])


def _pair_blocks(element: Applied) -> TaskResult:
    return TaskResult(list(element[2]))

"""`--dry-run`: an estimate of the input, time, memory and storage of a job.

The job itself runs in this process on samples of the corpus. Training learns the words of the
sample, or of some parts of the counts. Only temporary files are written, and they are removed.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from bpe_beam.counts.manifest import CountsManifest, read_manifest
from bpe_beam.counts.part_files import iter_words
from bpe_beam.folders.output_folder import COUNTS
from bpe_beam.jobs.corpus.summary import Rows
from bpe_beam.jobs.dry_run import costs, trial
from bpe_beam.jobs.dry_run.cluster import Prices, prediction, read_prices
from bpe_beam.jobs.dry_run.costs import Stage
from bpe_beam.jobs.dry_run.pace import Pace
from bpe_beam.jobs.dry_run.trial import RESIDENT, Trials, memory, try_samples
from bpe_beam.progress import Progress
from bpe_beam.settings.cluster import cluster_of
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.train import TrainingSettings, TrainSettings
from bpe_beam.storage import Storage
from bpe_beam.training.merges.words import memory_needed
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe, WordPieceRecipe
from bpe_beam.workers.count_split import TABLE_BYTES

if TYPE_CHECKING:
    from bpe_beam.corpus.plan import Plan
    from bpe_beam.jobs.train.plan import TrainingPlan

_LEARNING_SHARE, _MIN_LEARNING = 0.15, 1.0
"""The share of its time, and the minimum of seconds, that a training on some words takes."""

_BYTE_SECONDS, _ENTRY_SECONDS = 200e-9, 2.5e-6
"""The usual time of learning merges, for each byte of the words and each entry."""

_WORD_BYTES = 100  # the memory of a word in a table of counts

_WORD_CACHE_BYTES = 32 << 20
"""The usual memory of the word cache of an encoding thread, which a sample does not fill."""


class Estimate(Struct, frozen=True, kw_only=True):
    """The summary of `--dry-run`; all but `files`, `bytes` and `splits` are estimates."""

    job: str
    dry_run: bool = True
    files: int | UnsetType = UNSET
    files_excluded: int | None = None
    duplicate_inputs: list[str] | None = None
    links_not_followed: list[str] | None = None
    files_passed_over: list[str] | None = None
    by_format: dict[str, str] | UnsetType = UNSET
    bytes: int | UnsetType = UNSET
    splits: int | UnsetType = UNSET
    sampled_bytes: int | UnsetType = UNSET  # the stored bytes of the sample
    documents: int | UnsetType = UNSET
    text_bytes: int | UnsetType = UNSET
    words: int | UnsetType = UNSET
    unique_words: int | UnsetType = UNSET
    tokens: int | UnsetType = UNSET
    rejects: int | UnsetType = UNSET
    merge_rounds: str | UnsetType = UNSET
    workers: int
    # The time of the command on this machine, the start of the process included; None if merges
    # would be learned in rounds
    seconds: float | None
    memory_bytes: int  # the peak of the process's resident memory; of merge rounds an upper bound
    storage_bytes: int  # the size of all files of the output
    temporary_bytes: int | UnsetType = UNSET  # the maximum of temporary files in the output folder
    # The prediction for `--cluster`; see `cluster.prediction`
    cluster_stages: Rows | UnsetType = UNSET
    cluster: Rows | UnsetType = UNSET
    cluster_price: Rows | UnsetType = UNSET
    warnings: Sequence[str] = ()
    next: Sequence[str] = ("the same without --dry-run",)


def run(
    settings: CountSettings | TrainSettings | TokenizeSettings, _progress: Progress
) -> Estimate:
    if not settings.cluster:
        return _estimate(settings)[0]
    cluster, storage = cluster_of(settings.cluster), Storage(settings.run.storage_options)
    # A wrong file is refused before a sample is read.
    prices = read_prices(storage, cluster.prices) if cluster.prices else Prices()
    with Pace() as pace:
        estimate, stages = _estimate(replace(settings, cluster=()), cluster.slots)
    rows = prediction(stages, cluster, prices, estimate.storage_bytes, pace.mean)
    return replace(estimate, **rows, next=("the same without --dry-run and --cluster",))


def _estimate(
    settings: CountSettings | TrainSettings | TokenizeSettings, slots: int = 1
) -> tuple[Estimate, Mapping[str, Stage]]:
    """Return the estimate for this machine, and the stages of the job on a store, with slots."""
    if isinstance(settings, CountSettings):
        with tempfile.TemporaryDirectory() as folder:
            words = _count_sample(settings, folder)
            return Estimate(job="count", **words.rows()), words.stages()
    if isinstance(settings, TrainSettings):
        return _estimate_training(settings)
    return _estimate_tokenizing(settings, slots)


# ---- words ----


@dataclass(frozen=True)
class _Words:
    """The words of a sample, scaled to the whole corpus."""

    trials: Trials
    manifest: CountsManifest
    once: int  # how many unique words occur once

    def growth(self, times: float) -> float:
        """Return the factor of unique words of a text that is `times` as long.

        Unique words grow with a power of the text (Heaps' law): the share of them that occur once.
        """
        return math.pow(max(1.0, times), self.once / max(1, self.manifest.unique_words))

    @property
    def unique(self) -> int:
        """The number of unique words of the corpus."""
        return round(self.manifest.unique_words * self.growth(1 / self.trials.share))

    def rows(self) -> Rows:
        trials, plan = self.trials, self.trials.plan
        splits = len(plan.splits)
        # A split of the sample is smaller, and there are fewer of them.
        times = trials.splits / (splits * trials.share)
        in_split = self.growth(times)
        blocks = trials.second.blocks
        words = self.manifest.unique_words / trials.splits * in_split
        first, second = trials.first, trials.second
        more_words = second.summary["unique_words"] - first.summary["unique_words"]
        word_bytes = (second.storage_bytes - first.storage_bytes) / max(1, more_words)
        if more_words <= 0:
            word_bytes = second.storage_bytes / max(1, second.summary["unique_words"])
        tables = trials.workers * min(words * _WORD_BYTES, 2 * TABLE_BYTES)
        return {
            **trials.rows(),
            "words": trials.whole("words"),
            "unique_words": self.unique,
            "seconds": round(trials.seconds, 1),
            "memory_bytes": memory() + round(tables if trials.share < 1 else 0),
            "storage_bytes": second.storage_bytes
            + second.manifest_bytes
            + round(word_bytes * (self.unique - self.manifest.unique_words)),
            "temporary_bytes": round(blocks * in_split * splits / trials.splits),
        }

    def stages(self) -> dict[str, Stage]:
        """Return the stages of counting on a store."""
        trials = self.trials
        rows = self.rows()
        blocks = max(1, rows["temporary_bytes"])
        usual = [
            costs.counting_seconds(each.text, each.blocks, trials.splits)
            for each in (trials.second, trials.repeated)
        ]
        taken = [each.processor_seconds("CountSplit") for each in (trials.second, trials.repeated)]
        level = taken[0] / usual[0]
        if usual[0] > usual[1]:
            # None of it is the time that the many slices of a sample take.
            level = max(0.0, taken[0] - taken[1]) / (usual[0] - usual[1])
        # Parts of a sample take nearly all their time to open files.
        seconds = (
            level * costs.counting_seconds(trials.text, blocks, trials.corpus.splits),
            level * costs.PART_BLOCK_SECONDS * blocks,
        )
        return costs.count_stages(
            trials.corpus, seconds, blocks, self.unique, rows["storage_bytes"]
        )


def _count_sample(settings: CountSettings, folder: str, output: str | None = None) -> _Words:
    """Count samples into counts folders below a temporary one; `output` is the command's."""
    from bpe_beam.jobs import count

    trials = try_samples(
        count.plan_of(settings, Storage(settings.run.storage_options), output),
        replace(settings, dry_run=False),
        folder,
        lambda one, progress, sample: count.run(one, progress, plan=sample),
    )
    manifest = read_manifest(Storage(), f"{folder}/second")
    tables = iter_words(Storage(), f"{folder}/second", manifest)
    once = sum(int(np.count_nonzero(each["count"].to_numpy() == 1)) for each in tables)
    return _Words(trials, manifest, once)


# ---- training ----


def _estimate_training(settings: TrainSettings) -> tuple[Estimate, Mapping[str, Stage]]:
    from bpe_beam.jobs.train.plan import plan_training

    plan = plan_training(settings, Storage(settings.run.storage_options))
    if plan.counts is not None:
        manifest, started = plan.counts.manifest, time.process_time()
        unique = manifest.unique_words
        training, stages = _training(
            plan, plan.settings, manifest, unique, manifest.word_bytes, started
        )
        if training["seconds"] is not None:
            training["seconds"] = round(started + training["seconds"], 1)
        return Estimate(job="train", unique_words=unique, workers=1, **training), stages
    with tempfile.TemporaryDirectory() as folder:
        words = _count_sample(plan.counting, folder, settings.output)
        rows, counting = words.rows(), words.stages()
        training, stages = _training(
            plan,
            replace(plan.settings, input=None, counts=f"{folder}/second"),
            words.manifest,
            words.unique,
            round(words.manifest.word_bytes * words.unique / max(1, words.manifest.unique_words)),
        )
    seconds = training["seconds"]
    estimate = Estimate(
        job="train",
        **{
            **rows,
            "merge_rounds": training["merge_rounds"],
            "seconds": None if seconds is None else round(rows["seconds"] + seconds, 1),
            "memory_bytes": max(rows["memory_bytes"], training["memory_bytes"]),
            "storage_bytes": rows["storage_bytes"] + training["storage_bytes"],
        },
    )
    return estimate, {**counting, **stages}


def _training(
    plan: TrainingPlan,
    settings: TrainingSettings,
    manifest: CountsManifest,
    unique: int,
    word_bytes: int,
    started: float = 0.0,
) -> tuple[Rows, Mapping[str, Stage]]:
    """Return the estimate of training, from a training on all or some parts of counts.

    `started` are the processor seconds before, if no other stage has them.
    """
    from bpe_beam.jobs.train.local_or_distributed import learns_in_rounds
    from bpe_beam.jobs.train.plan import PlannedCounts

    recipe = plan.recipe
    whole = replace(manifest, unique_words=unique, word_bytes=word_bytes)
    folder = plan.settings.counts or plan.storage.join(plan.settings.folder, COUNTS)
    planned = replace(plan, counts=PlannedCounts(folder, whole, "", None))
    in_rounds, _ = learns_in_rounds(planned)
    sizes = [part.word_bytes for part in manifest.parts]
    parts = len(sizes)
    limit = max(_MIN_LEARNING, _LEARNING_SHARE * _usual_seconds(recipe, word_bytes))
    while parts > 2 and _usual_seconds(recipe, sum(sizes[:parts])) > limit:
        parts -= 1
    learned = sum(sizes[:parts])
    share = min(1.0, max(1, learned) / max(1, word_bytes))
    first = _learned(plan, settings, 1 if share < 1 else parts)
    processor, seconds = started + first.processor_seconds, first.seconds
    grown, storage = first.grown, first.storage_bytes
    needed = memory_needed(word_bytes, unique, recipe)
    if share < 1:
        # The first has imported modules. More words take the difference of the others, since
        # reading files and making the alphabet come first in each.
        last, less = (_learned(plan, settings, number) for number in (parts, 1))
        times = (word_bytes - sizes[0]) / max(1, learned - sizes[0])
        processor += times * max(0.0, last.processor_seconds - less.processor_seconds)
        seconds += times * max(0.0, last.seconds - less.seconds)
        # The needed memory is an upper bound; the training shows the share that is really used.
        sampled = memory_needed(round(word_bytes * share), round(unique * share), recipe)
        grown += round(needed * min(1.0, last.grown / sampled))
        storage = round(last.storage_bytes * recipe.vocab_size / max(1, last.vocab_size))
    peak = first.before + (min(needed, settings.driver_memory) if in_rounds else grown)
    if in_rounds and isinstance(recipe, BpeRecipe | WordPieceRecipe):
        rounds = costs.usual_rounds(recipe.vocab_size, word_bytes, settings.driver_memory)
        stages = costs.rounds_stages(word_bytes, rounds, peak)
    elif in_rounds:
        stages = costs.passes_stages(word_bytes, peak)
    else:
        counts_bytes = sum(part.file.bytes for part in manifest.parts) * unique
        counts_bytes //= max(1, manifest.unique_words)
        stages = costs.training_stages(processor, counts_bytes, storage, peak)
    return {
        "merge_rounds": "distributed" if in_rounds else "local",
        "seconds": None if in_rounds else seconds,
        "memory_bytes": peak,
        "storage_bytes": storage,
    }, stages


class _Learned(Struct, frozen=True):
    """The cost of a training in this process; memory was `before` and has `grown` in bytes."""

    seconds: float
    processor_seconds: float
    before: int
    grown: int
    storage_bytes: int
    vocab_size: int


def _learned(plan: TrainingPlan, settings: TrainingSettings, parts: int) -> _Learned:
    """Learn from so many parts of the counts."""
    from bpe_beam.jobs import train

    with tempfile.TemporaryDirectory() as folder:
        alone = replace(
            settings,
            output=f"{folder}/output",
            run=trial.here(settings.run),
            merge_rounds="local",
            driver_memory=1 << 60,
            dry_run=False,
        )
        trial.forget_peak()
        before, begun, processor = memory(RESIDENT), time.monotonic(), time.process_time()
        summary = train.run(alone, trial.TrialProgress(), parts=parts)
        return _Learned(
            time.monotonic() - begun,
            time.process_time() - processor,
            before,
            max(0, memory() - before),
            sum(trial.sizes_of(alone.folder)),
            summary.vocab_size,
        )


def _usual_seconds(recipe: Recipe, word_bytes: float) -> float:
    """Return the time of training on words of so many bytes on some machine; more than 0."""
    entries = 0 if isinstance(recipe, WordLevelRecipe) else recipe.vocab_size
    return max(1.0, word_bytes) * _BYTE_SECONDS + entries * _ENTRY_SECONDS


# ---- tokens ----


def _estimate_tokenizing(
    settings: TokenizeSettings, slots: int
) -> tuple[Estimate, Mapping[str, Stage]]:
    from bpe_beam.jobs import tokenize
    from bpe_beam.jobs.tokenize.documents import read_inputs

    inputs = read_inputs(settings)
    plan = inputs.plan

    def tried(one: TokenizeSettings, progress: Progress, sample: Plan) -> object:
        arranging = replace(one.arranging, dry_run=False)
        if arranging.validation_share is not None and sample is not plan:
            # A small share of a sample may have no document.
            arranging = replace(arranging, validation_share="50%")
        return tokenize.run(replace(one, arranging=arranging), progress, plan=sample)

    with tempfile.TemporaryDirectory() as folder:
        before = memory(RESIDENT)
        trials = try_samples(plan, settings, folder, tried)
    peak = memory()
    caches = trials.workers * _WORD_CACHE_BYTES
    grown = min(caches, (peak - before) * (1 / trials.share - 1))
    estimate = Estimate(
        job="tokenize",
        **trials.rows(),
        tokens=trials.whole("tokens"),
        seconds=round(trials.seconds, 1),
        memory_bytes=peak + round(grown),
        storage_bytes=round(trials.storage_bytes),
    )
    return estimate, _tokenizing_stages(settings, trials, inputs.tokenizer.vocab_size, slots)


def _tokenizing_stages(
    settings: TokenizeSettings, trials: Trials, vocabulary: int, slots: int
) -> dict[str, Stage]:
    from bpe_beam.jobs.tokenize.documents import TokenizeJob

    corpus, shard_bytes = trials.corpus, max(1, round(trials.storage_bytes))
    second, threads = trials.second, min(trials.splits, trials.workers + TokenizeJob.spare)
    level = second.processor_seconds("TokenizeSplit") / costs.tokenizing_seconds(
        second.text, threads
    )
    seconds = level * costs.tokenizing_seconds(trials.text, min(slots, corpus.splits))
    stages = costs.tokenize_stages(corpus, seconds, shard_bytes, vocabulary)
    arrangement = settings.arranging.arrangement
    if arrangement is None:
        return stages
    tokens, largest = trials.whole("tokens"), arrangement.shard_tokens
    measure, order, write = map(
        trials.processor_seconds, ("MeasureShard", "ScatterShard", "WriteNewShard")
    )
    new_shards = max(len(arrangement.parts), math.ceil(tokens / largest))
    return stages | costs.arrange_stages(
        settings.output,
        corpus,
        (measure, order, write),
        shard_bytes,
        new_shards,
        costs.new_shard_memory(tokens // new_shards, vocabulary),
    )

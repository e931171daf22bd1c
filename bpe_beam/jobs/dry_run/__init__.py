"""`--dry-run`: what a job would read, how long, and how much memory and storage it would take.

The job itself runs in this process on two parts of the corpus from all over it, of which the first
is a quarter of the second. What the second takes more is what more text takes; a small corpus is
read whole, and its amounts are exact. Training learns the words of the sample. Nothing
is written but temporary files, which are removed.

The number of unique words grows with a power of the text, which is measured between both parts and
falls slowly.
"""

from __future__ import annotations

import heapq
import io
import math
import resource
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from bpe_beam.corpus.formats.interface import input_format
from bpe_beam.corpus.plan import Plan, Slice, Split
from bpe_beam.corpus.split_planning import can_be_cut
from bpe_beam.counts.manifest import CountsManifest, read_manifest
from bpe_beam.engines.local import scattered
from bpe_beam.engines.run import workers_of
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.jobs.corpus.summary import inputs_summary
from bpe_beam.progress import Progress, Stage
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.train import TrainingSettings
from bpe_beam.storage import Storage
from bpe_beam.training.merges.words import memory_needed
from bpe_beam.training.recipe import Recipe, WordLevelRecipe
from bpe_beam.workers import metric_names
from bpe_beam.workers.count_split import TABLE_BYTES

SAMPLE_SHARE, LEAST_SAMPLE, MOST_SAMPLE = 0.025, 8 << 20, 64 << 20
"""The share of the stored bytes that the sample has, and its least and most bytes."""

_SPLITS = 8
"""The splits of the sample, at least."""

_PLACES, _PLACE_BYTES = 128, 1 << 20
"""The places of the sample, fewer where a file cannot be read from any byte on: a reader reads
about so much at once."""

_LEARNING_SHARE, _LEAST_LEARNING = 0.08, 0.3
"""The share of its time, and the least seconds, that a training on some of the words takes."""

_POWER_FALLS, _LEAST_POWER, _USUAL_POWER = 0.02, 0.35, 0.6
"""By how much the power of unique words falls as text doubles, the least that it falls to, and what
it is where it cannot be measured."""

_WORD_BYTES = 100
"""The memory of a word in a table of counts."""

_WORD_CACHE_BYTES = 32 << 20
"""The usual memory of the word cache of an encoding thread, which a sample does not fill."""

_NANOSECOND = 1e-9
_BYTE_NANOSECONDS, _ENTRY_NANOSECONDS = 100, 4_000
"""The usual time of learning merges, for each byte of the words and each entry."""


class Estimate(Struct, frozen=True, kw_only=True):
    """The summary of `--dry-run`; all but `files`, `bytes` and `splits` are estimates.

    Attributes:
        sampled_bytes: The stored bytes of the sample.
        seconds: How long the command would take on this machine, the start of the process included;
            None: not known, since merges would be learned in rounds.
        memory_bytes: The peak of the process's resident memory; of merge rounds an upper bound.
        storage_bytes: The size of all files of the output.
        temporary_bytes: The most that the job has in its output folder besides, until it ends.
    """

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
    sampled_bytes: int | UnsetType = UNSET
    documents: int | UnsetType = UNSET
    text_bytes: int | UnsetType = UNSET
    words: int | UnsetType = UNSET
    unique_words: int | UnsetType = UNSET
    tokens: int | UnsetType = UNSET
    rejects: int | UnsetType = UNSET
    merge_rounds: str | UnsetType = UNSET
    workers: int
    seconds: float | None
    memory_bytes: int
    storage_bytes: int
    temporary_bytes: int | UnsetType = UNSET
    next: Sequence[str] = ("the same without --dry-run",)


# ---- the sample ----


def sample_of(
    storage: Storage, plan: Plan, size: int, places: int, separator: str, splits: int
) -> Plan:
    """Return a plan that reads about so many bytes, from places all over the corpus.

    A sample of a quarter of the bytes from half of the places is within it.
    """
    slices = [part for split in plan.splits for part in split.slices]
    ends = [*accumulate(part.end - part.start for part in slices)]
    anywhere = {
        number
        for number, file in enumerate(plan.files)
        if file.compression == "none"
        and not input_format(file.format).columnar
        and can_be_cut(file, separator)
    }
    if len(anywhere) < len(plan.files):
        places = min(places, max(splits, size // _PLACE_BYTES))
    place_bytes = -(-size // places)

    def read_from(place: int) -> Iterator[Slice]:
        """Yield what is read from a place on: parts of slices, or slices to be read in part."""
        position, left = place * plan.size // places, place_bytes
        number = bisect_right(ends, position)
        while left > 0 and number < len(slices):
            file, start, end = slices[number]
            if file in anywhere:
                start = max(start, end - (ends[number] - position))
                last = min(end, start + left)
                left -= last - start
                start, end = (
                    _record_after(storage, plan, file, at, separator) for at in (start, last)
                )
            elif plan.files[file].compression != "none":
                start, end = 0, plan.files[file].size  # only there a reader need not search
                left = 0
            else:
                left -= end - start
            yield Slice(file, start, end)
            number, position = number + 1, ends[number]

    with ThreadPoolExecutor(_PLACES) as pool:
        found = list(pool.map(lambda place: list(read_from(place)), range(places)))
    seen: set[Slice] = set()
    groups: list[list[Slice]] = [[] for _ in range(splits)]
    for place, parts in enumerate(found):
        groups[place % splits] += [part for part in parts if part not in seen]
        seen.update(parts)
    chosen = tuple(Split(number, tuple(group)) for number, group in enumerate(filter(None, groups)))
    return replace(plan, splits=chosen, most_read=-(-size // len(seen)))


def _record_after(storage: Storage, plan: Plan, file: int, position: int, separator: str) -> int:
    """Return where a record begins, so that the documents of a slice have as many bytes as it.

    The position itself, if none begins soon after it.
    """
    size = plan.files[file].size
    if not 0 < position < size:
        return position
    separated = input_format(plan.files[file].format).separated
    end = separator.encode() if separated else b"\n"
    with storage.open(plan.url(file)) as opened:
        opened.seek(position - 1)
        found = opened.read(min(_PLACE_BYTES, size - position + 1)).find(end)
    return position if found < 0 else position - 1 + found + len(end)


class _MeasuredStage(Stage):
    """A stage that keeps what its tasks have reported."""

    counters: dict[str, int]

    def at_least(self, done: int, **counters: int) -> None:
        """Do nothing: splits of a sample may be read in part."""

    def __exit__(self, *error: Any) -> None:
        now = self.snapshot()
        self.counters.update(now.counters, done=max(now.done, self.counters.get("done", 0)))
        super().__exit__(*error)


class _MeasuredProgress(Progress):
    """Shows nothing, and has what the tasks of the stages have reported."""

    def __init__(self) -> None:
        super().__init__("none", stream=io.StringIO())
        self.counters: dict[str, int] = {}

    def stage(self, name: str, total: int | None, unit: str) -> Stage:
        """See `Progress.stage`."""
        stage = _MeasuredStage(name, total, unit, None)
        stage.counters = self.counters
        return stage


@dataclass(frozen=True)
class _Run:
    """What the job took on a part of the corpus.

    Attributes:
        seconds: Its seconds.
        counters: What its tasks have reported; `done` are the stored bytes that it read.
        storage_bytes: The bytes of its output, without those of manifests.
        manifest_bytes: Those of manifests, which list slices, of which samples have more.
        summary: Its summary.
    """

    seconds: float
    counters: dict[str, int]
    storage_bytes: int
    manifest_bytes: int
    summary: dict[str, Any]

    @property
    def stored(self) -> int:
        """The stored bytes that it read; at least 1."""
        return max(1, self.counters["done"])

    @property
    def text(self) -> int:
        """The bytes of the text; at least 1."""
        return max(1, int(self.summary["text_bytes"]))


@dataclass(frozen=True)
class _Sample:
    """The runs on both parts of the corpus; the same one twice, if it was read whole.

    Attributes:
        started: The seconds of this process before the first run.
        repeated_seconds: Those of the first run when it was repeated: the first has imports too.
        workers: How many splits are read at once.
        splits: The splits of the second run.
    """

    plan: Plan
    first: _Run
    second: _Run
    started: float
    repeated_seconds: float
    workers: int
    splits: int

    @property
    def share(self) -> float:
        """The share of the corpus that the second run has read."""
        return self.second.stored / max(self.second.stored, self.plan.size)

    @property
    def text(self) -> float:
        """The bytes of the text of the whole corpus."""
        return self.second.text / self.share

    @property
    def seconds(self) -> float:
        """The seconds of the job on the whole corpus, the start of the process included."""
        # Each worker reads a split at a time, so that the last one may be left alone.
        free = [0] * self.workers
        for number in scattered(len(self.plan.splits)):
            heapq.heapreplace(free, free[0] + self.plan.splits[number].size)
        uneven = max(free) * self.workers / max(1, self.plan.size)
        more = self.per_byte(self.second.seconds - self.repeated_seconds)
        return self.started + self.first.seconds + more * (uneven * self.text - self.first.text)

    @property
    def storage_bytes(self) -> float:
        """The bytes of the output, if they grow as the text does."""
        more = self.per_byte(self.second.storage_bytes - self.first.storage_bytes)
        files = self.first.storage_bytes + more * (self.text - self.first.text)
        return files + self.second.manifest_bytes

    def per_byte(self, difference: float) -> float:
        """Return a difference between both runs for each byte of text; 0 if they are the same."""
        return max(0.0, difference) / max(1, self.second.text - self.first.text)

    def whole(self, name: str) -> int:
        """Return an amount of the whole corpus by its name in the summary."""
        return round(float(self.second.summary[name]) / self.share)

    def rows(self) -> dict[str, Any]:
        """Return the rows of the summary that jobs share."""
        plan = self.plan
        rows = inputs_summary(plan, ())
        del rows["files_read_by_one_worker"]
        return {
            **rows,
            "bytes": plan.size,
            "splits": len(plan.splits),
            "sampled_bytes": self.second.stored,
            **{name: self.whole(name) for name in ("documents", "text_bytes", "rejects")},
            "workers": self.workers,
        }


def _sampled(
    plan: Plan,
    settings: CountSettings | TokenizeSettings,
    folder: str,
    run: Callable[[Any, Progress, Plan], Any],
) -> _Sample:
    """Run a job on both parts of a sample."""
    started = time.process_time()
    workers = workers_of(settings.run, len(plan.splits))

    def tried(name: str, part: Plan) -> _Run:
        output = f"{folder}/{name}"
        any_rejects = replace(settings.input, max_rejects="100%")
        one = replace(settings, input=any_rejects, output=output, run=_here(settings.run, workers))
        progress, begun = _MeasuredProgress(), time.monotonic()
        summary = msgspec.to_builtins(run(one, progress, part))
        seconds = time.monotonic() - begun
        return _Run(seconds, progress.counters, *_sizes_of(output), summary)

    size = min(MOST_SAMPLE, max(LEAST_SAMPLE, round(SAMPLE_SHARE * plan.size)))
    if plan.size <= 2 * size:
        whole = tried("second", plan)
        return _Sample(plan, whole, whole, started, whole.seconds, workers, len(plan.splits))
    storage, separator = Storage(settings.run.storage_options), settings.input.document_separator
    parts = [
        sample_of(storage, plan, bytes_, places, separator, max(_SPLITS, workers))
        for bytes_, places in ((size // 4, _PLACES // 2), (size, _PLACES))
    ]
    first, repeated = tried("first", parts[0]), tried("repeated", parts[0])
    _forget_peak()
    second, splits = tried("second", parts[1]), len(parts[1].splits)
    return _Sample(plan, first, second, started, repeated.seconds, workers, splits)


def _here(run: RunSettings, workers: int | None = None) -> RunSettings:
    """Return how a job runs in this process, with so many workers, and says nothing."""
    return RunSettings(workers=workers, quiet=True, storage_options=run.storage_options)


def _sizes_of(folder: str) -> tuple[int, int]:
    """Return the bytes of all files of a folder but manifests, and those of manifests."""
    sizes = [0, 0]
    for path in Path(folder).rglob("*"):
        sizes[path.name == MANIFEST_FILE] += path.stat().st_size if path.is_file() else 0
    return sizes[0], sizes[1]


def peak_memory() -> int:
    """Return the peak of this process's resident memory, in bytes."""
    return _memory("VmHWM")


def _memory(name: str) -> int:
    try:
        # Not by `getrusage`, which counts the process that this one was forked from.
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def _forget_peak() -> None:
    """Let the peak of memory begin anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


# ---- words ----


@dataclass(frozen=True)
class _Words:
    """The words of a sample, and what follows for the whole corpus."""

    sample: _Sample
    manifest: CountsManifest

    def growth(self, times: float) -> float:
        """Return how many times more unique words a text has than one of which it is a multiple."""
        power, doublings = self._power(), math.log2(max(1.0, times))
        grown = 0.0
        while doublings > 0:
            step = min(1.0, doublings)
            power = max(min(power, _LEAST_POWER), power - _POWER_FALLS * step)
            grown, doublings = grown + step * power, doublings - step
        return math.pow(2.0, grown)

    def _power(self) -> float:
        """Return the power with which unique words grow at the sample's size.

        It is measured from one split of the sample to all, and from the first run to the second:
        splits may have no documents, and the first run is small.
        """
        first, second = self.sample.first, self.sample.second
        splits, in_splits = self.sample.splits, second.counters.get("_words_written", 0)
        before, unique = first.summary["unique_words"], second.summary["unique_words"]
        found = [1.0]
        if splits > 1 and in_splits:
            rows = sum(part.rows for part in self.manifest.parts)  # words of each source
            power = math.log(splits * rows / in_splits) / math.log(splits)
            found.append(power - _POWER_FALLS * math.log2(splits) / 2)
        if second.text > first.text and before:
            found.append(math.log(unique / before) / math.log(second.text / first.text))
        return max(0.0, min(found)) if len(found) > 1 else _USUAL_POWER

    @property
    def unique(self) -> int:
        """The number of unique words of the corpus."""
        return round(self.manifest.unique_words * self.growth(1 / self.sample.share))

    def rows(self) -> dict[str, Any]:
        """Return the rows of the summary."""
        sample, plan = self.sample, self.sample.plan
        splits = len(plan.splits)
        # A split of the sample is smaller, and there are fewer of them.
        times = sample.splits / (splits * sample.share)
        in_split = self.growth(times)
        blocks = (sample.second.summary["counters"] or {}).get(metric_names.COUNT_BLOCK_BYTES, 0)
        words = self.manifest.unique_words / sample.splits * in_split
        first, second = sample.first, sample.second
        more_words = second.summary["unique_words"] - first.summary["unique_words"]
        word_bytes = (second.storage_bytes - first.storage_bytes) / max(1, more_words)
        tables = sample.workers * min(words * _WORD_BYTES, 2 * TABLE_BYTES)
        return {
            **sample.rows(),
            "words": sample.whole("words"),
            "unique_words": self.unique,
            "seconds": round(sample.seconds, 1),
            "memory_bytes": peak_memory() + round(tables if sample.share < 1 else 0),
            "storage_bytes": second.storage_bytes
            + second.manifest_bytes
            + round(word_bytes * (self.unique - self.manifest.unique_words)),
            "temporary_bytes": round(blocks * in_split * splits / sample.splits),
        }


def _count_sample(plan: Plan, settings: CountSettings, folder: str) -> _Words:
    """Count a sample into counts folders below a temporary one."""
    from bpe_beam.jobs import count

    sample = _sampled(
        plan,
        replace(settings, dry_run=False),
        folder,
        lambda one, progress, part: count.run(one, progress, plan=part),
    )
    return _Words(sample, read_manifest(Storage(), f"{folder}/second"))


def estimate_counting(plan: Plan, settings: CountSettings) -> Estimate:
    """Return what counting a corpus would take."""
    with tempfile.TemporaryDirectory() as folder:
        return Estimate(job="count", **_count_sample(plan, settings, folder).rows())


# ---- training ----


def estimate_training(
    plan: Plan, counting: CountSettings, settings: TrainingSettings, recipe: Recipe
) -> Estimate:
    """Return what counting a corpus and training from its words would take."""
    with tempfile.TemporaryDirectory() as folder:
        words = _count_sample(plan, counting, folder)
        rows = words.rows()
        training = _training(
            replace(settings, input=None, counts=f"{folder}/second"),
            recipe,
            words.manifest,
            words.unique,
            round(words.manifest.word_bytes * words.unique / max(1, words.manifest.unique_words)),
        )
    seconds = training["seconds"]
    return Estimate(
        job="train",
        **{
            **rows,
            "merge_rounds": training["merge_rounds"],
            "seconds": None if seconds is None else round(rows["seconds"] + seconds, 1),
            "memory_bytes": max(rows["memory_bytes"], training["memory_bytes"]),
            "storage_bytes": rows["storage_bytes"] + training["storage_bytes"],
        },
    )


def estimate_training_from_counts(
    settings: TrainingSettings, recipe: Recipe, manifest: CountsManifest
) -> Estimate:
    """Return what training from counts would take."""
    started = time.process_time()
    training = _training(settings, recipe, manifest, manifest.unique_words, manifest.word_bytes)
    if training["seconds"] is not None:
        training["seconds"] = round(started + training["seconds"], 1)
    return Estimate(job="train", unique_words=manifest.unique_words, workers=1, **training)


def _training(
    settings: TrainingSettings,
    recipe: Recipe,
    manifest: CountsManifest,
    unique: int,
    word_bytes: int,
) -> dict[str, Any]:
    """Return what training takes, from a training on all or some parts of counts."""
    from bpe_beam.jobs import train

    sizes = [part.word_bytes for part in manifest.parts]
    parts = len(sizes)
    most = max(_LEAST_LEARNING, _LEARNING_SHARE * _work(recipe, word_bytes))
    while parts > 1 and _work(recipe, sum(sizes[:parts])) > most:
        parts -= 1
    share = min(1.0, max(1, sum(sizes[:parts])) / max(1, word_bytes))
    with tempfile.TemporaryDirectory() as folder:
        alone = replace(
            settings,
            output=f"{folder}/output",
            run=_here(settings.run),
            merge_rounds="local",
            driver_memory=1 << 60,
            dry_run=False,
        )
        _forget_peak()
        before, begun = _memory("VmRSS"), time.monotonic()
        summary = train.train_from_parts(alone, parts, _MeasuredProgress())
        seconds = time.monotonic() - begun
        storage = sum(_sizes_of(alone.folder))
    needed = memory_needed(word_bytes, unique, recipe.vocab_size)
    in_rounds = settings.merge_rounds == "distributed" or (
        settings.merge_rounds != "local" and needed > settings.driver_memory
    )
    # The needed memory is an upper bound: how much of it the words of the sample took is known.
    sampled = memory_needed(round(word_bytes * share), round(unique * share), recipe.vocab_size)
    grown = max(0, peak_memory() - before)
    grown = max(grown, round(needed * min(1.0, grown / sampled)))
    if share < 1:
        storage = round(storage * recipe.vocab_size / max(1, summary.vocab_size))
    learning = float(summary.learning_seconds or 0.0)
    more = _work(recipe, word_bytes) / max(_NANOSECOND, _work(recipe, word_bytes * share)) - 1
    return {
        "merge_rounds": "distributed" if in_rounds else "local",
        "seconds": None if in_rounds else seconds + learning * more,
        "memory_bytes": before + (min(needed, settings.driver_memory) if in_rounds else grown),
        "storage_bytes": storage,
    }


def _work(recipe: Recipe, word_bytes: float) -> float:
    """Return the time of training on words of so many bytes, in seconds of some machine."""
    if isinstance(recipe, WordLevelRecipe):
        return word_bytes * _NANOSECOND
    usual = word_bytes * _BYTE_NANOSECONDS + recipe.vocab_size * _ENTRY_NANOSECONDS
    return usual * _NANOSECOND


# ---- tokens ----


def estimate_tokenizing(plan: Plan, settings: TokenizeSettings) -> Estimate:
    """Return what tokenizing a corpus would take."""
    from bpe_beam.jobs import tokenize

    undivided = replace(settings, arranging=replace(settings.arranging, dry_run=False))
    with tempfile.TemporaryDirectory() as folder:
        before = _memory("VmRSS")
        sample = _sampled(
            plan,
            undivided,
            folder,
            lambda one, progress, part: tokenize.run(one, progress, plan=part),
        )
    peak = peak_memory()
    caches = sample.workers * _WORD_CACHE_BYTES
    grown = min(caches, (peak - before) * (1 / sample.share - 1))
    return Estimate(
        job="tokenize",
        **sample.rows(),
        tokens=sample.whole("tokens"),
        seconds=round(sample.seconds, 1),
        memory_bytes=peak + round(grown),
        storage_bytes=round(sample.storage_bytes),
    )

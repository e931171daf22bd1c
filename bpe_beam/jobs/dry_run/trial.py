"""Trials: a job runs on samples of its corpus in this process, and its figures are scaled.

The job runs on two samples; the first is a quarter of the second, from the same positions if files
can be read from any byte on. The difference is the cost of more text. A small corpus is read whole,
and its amounts are exact.
"""

from __future__ import annotations

import contextlib
import heapq
import io
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bpe_beam.corpus.plan import Plan
from bpe_beam.engines.run import scattered, workers_of
from bpe_beam.engines.steps import processor_time
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.jobs.corpus.summary import Rows, inputs_summary
from bpe_beam.jobs.dry_run.costs import Corpus
from bpe_beam.jobs.dry_run.sample import POSITIONS, sample_of
from bpe_beam.progress import Progress, Stage
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.storage import Storage

SAMPLE_SHARE, MIN_SAMPLE, MAX_SAMPLE = 0.025, 32 << 20, 128 << 20
"""The share of the stored bytes that the sample has, and its minimum and maximum of bytes."""

PEAK, RESIDENT = "VmHWM", "VmRSS"  # names of amounts of memory in `/proc/self/status`

_SPLITS = 8  # the minimum of splits of a sample


class _TrialStage(Stage):
    done = 0

    def at_least(self, done: int, **counters: int) -> None:
        """Do nothing: splits of a sample may be read in part."""

    def __exit__(self, *error: Any) -> None:
        self.done = self.snapshot().done
        super().__exit__(*error)


class TrialProgress(Progress):
    """Shows nothing, and keeps its stages."""

    def __init__(self) -> None:
        super().__init__("none", stream=io.StringIO())
        self.stages: list[_TrialStage] = []

    def stage(self, name: str, total: int | None, unit: str) -> Stage:
        """See `Progress.stage`."""
        self.stages.append(_TrialStage(name, total, unit, None))
        return self.stages[-1]


@dataclass(frozen=True)
class Trial:
    """The figures of a job on a sample."""

    seconds: float
    stored: int  # the stored bytes that it read; at least 1
    storage_bytes: int  # the size of its output, without manifests
    manifest_bytes: int  # the size of manifests, which list slices: samples have more of them
    summary: Rows

    @property
    def text(self) -> int:
        """The bytes of the text; at least 1."""
        return max(1, int(self.summary["text_bytes"]))

    @property
    def blocks(self) -> int:
        """The bytes of the blocks of words."""
        return int((self.summary["counters"] or {}).get("count_block_bytes", 0))

    def processor_seconds(self, label: str) -> float:
        """Return the processor time of the tasks of a step."""
        measured = (self.summary["distributions"] or {}).get(processor_time(label), {"sum": 0})
        return float(measured["sum"]) / 1e6


@dataclass(frozen=True)
class Trials:
    """The trials on both samples; the same one twice, if the corpus was read whole."""

    plan: Plan
    first: Trial
    second: Trial
    started: float  # the seconds of this process before the first trial
    repeated: Trial  # the first trial when it was repeated, without imports
    workers: int  # how many splits are read at once
    splits: int  # the splits of the second sample

    @property
    def share(self) -> float:
        """The share of the corpus that the second trial has read."""
        return self.second.stored / max(self.second.stored, self.plan.size)

    @property
    def text(self) -> float:
        """The bytes of the text of the whole corpus."""
        return self.second.text / self.share

    @property
    def seconds(self) -> float:
        """The seconds of the job on the whole corpus, the start of the process included."""
        # Each worker reads a split at a time, so the last split may be read alone.
        free = [0] * self.workers
        for number in scattered(len(self.plan.splits)):
            heapq.heapreplace(free, free[0] + self.plan.splits[number].size)
        uneven = max(free) * self.workers / max(1, self.plan.size)
        more = self.per_byte(self.repeated.seconds, self.second.seconds)
        return self.started + self.first.seconds + more * (uneven * self.text - self.first.text)

    @property
    def storage_bytes(self) -> float:
        """The bytes of the output, if they grow as the text does."""
        files = self.grown(self.first.storage_bytes, self.second.storage_bytes)
        return files + self.second.manifest_bytes

    def processor_seconds(self, label: str) -> float:
        """Return the processor time of a step on the whole corpus, if it grows as the text does."""
        return self.grown(*(each.processor_seconds(label) for each in (self.repeated, self.second)))

    def grown(self, first: float, second: float) -> float:
        """Return an amount of the whole corpus by the amounts of both trials."""
        return second + self.per_byte(first, second) * (self.text - self.second.text)

    def per_byte(self, first: float, second: float) -> float:
        """Return how much an amount grows with each byte of text; 0 if all of it was read.

        Samples of few large row groups may have the same text; then all of it grows.
        """
        if self.share == 1:
            return 0.0
        more = self.second.text - self.first.text
        return max(0.0, second - first) / more if more > 0 else second / self.second.text

    @property
    def corpus(self) -> Corpus:
        """The sizes of the corpus."""
        plan = self.plan
        return Corpus(len(plan.files), len(plan.splits), plan.size, round(self.text))

    def whole(self, name: str) -> int:
        """Return an amount of the whole corpus by its name in the summary."""
        return round(float(self.second.summary[name]) / self.share)

    def rows(self) -> Rows:
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


def try_samples(
    plan: Plan,
    settings: CountSettings | TokenizeSettings,
    folder: str,
    run: Callable[[Any, Progress, Plan], object],
) -> Trials:
    """Run a job on both samples; the outputs are `first` and `second` below the folder."""
    started = time.process_time()
    workers = workers_of(settings.run, len(plan.splits))

    def tried(name: str, sample: Plan) -> Trial:
        output = f"{folder}/{name}"
        any_rejects = replace(settings.input, max_rejects="100%")
        one = replace(settings, input=any_rejects, output=output, run=here(settings.run, workers))
        progress, begun = TrialProgress(), time.monotonic()
        summary = msgspec.to_builtins(run(one, progress, sample))
        seconds = time.monotonic() - begun
        read = (stage.done for stage in progress.stages if stage.unit == "bytes")
        done = max(read, default=0) or 1
        return Trial(seconds, done, *sizes_of(output), summary)

    size = min(MAX_SAMPLE, max(MIN_SAMPLE, round(SAMPLE_SHARE * plan.size)))
    if plan.size <= 2 * size:
        whole = tried("second", plan)
        return Trials(plan, whole, whole, started, whole, workers, len(plan.splits))
    storage, separator = Storage(settings.run.storage_options), settings.input.document_separator
    quarter, sample = (
        sample_of(storage, plan, bytes_, POSITIONS, separator, max(_SPLITS, workers))
        for bytes_ in (size // 4, size)
    )
    first, repeated = tried("first", quarter), tried("repeated", quarter)
    forget_peak()
    second = tried("second", sample)
    return Trials(plan, first, second, started, repeated, workers, len(sample.splits))


def here(run: RunSettings, workers: int | None = None) -> RunSettings:
    """Return settings that run a job in this process without messages."""
    return RunSettings(workers=workers, quiet=True, storage_options=run.storage_options)


def sizes_of(folder: str) -> tuple[int, int]:
    """Return the bytes of all files of a folder except manifests, and the bytes of manifests."""
    sizes = [0, 0]
    for path in Path(folder).rglob("*"):
        sizes[path.name == MANIFEST_FILE] += path.stat().st_size if path.is_file() else 0
    return sizes[0], sizes[1]


def memory(name: str = PEAK) -> int:
    """Return the resident memory of this process, or its peak, in bytes."""
    try:
        # Not by `getrusage`, which counts the process that this one was forked from.
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Reset the peak of memory, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

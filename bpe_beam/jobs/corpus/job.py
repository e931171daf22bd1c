"""The job over a corpus that `count` and `tokenize` share: from claiming its folder to its summary.

One task reads a split. If the slices of a file turn out not to be contiguous, the file is read
again as one slice (`corpus/boundaries.py`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from bpe_beam.corpus.boundaries import files_with_gaps, without_units
from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.corpus.split_planning import can_be_cut
from bpe_beam.engines.run import run_steps, run_summary
from bpe_beam.engines.steps import Steps, template_of
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, REJECTS
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder, RestoredFolder
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.corpus import summary
from bpe_beam.jobs.corpus.summary import Rows
from bpe_beam.messages import list_few
from bpe_beam.progress import Progress, ShareOfTime
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.shards.numbering import TOKEN_COUNTS_SUFFIX
from bpe_beam.storage import Storage
from bpe_beam.storage.names import is_local
from bpe_beam.workers.reject_limits import CorpusTotals
from bpe_beam.workers.split_reader import SplitReading
from bpe_beam.workers.split_task import split_tasks, task_name
from bpe_beam.workers.task_results import Metric, MetricSums, TaskResult

if TYPE_CHECKING:
    # A job imports its own settings only.
    from bpe_beam.settings.count import CountSettings
    from bpe_beam.settings.tokenize import TokenizeSettings

S = TypeVar("S", bound="CountSettings | TokenizeSettings")
M = TypeVar("M")

Receipts = Mapping[str, Receipt | None]  # receipts by task; None: the task has none


class RemainingSplits(NamedTuple):
    """The splits of a plan, as it is read now, that are still to be read."""

    plan: Plan
    tasks: list[str]
    done: Mapping[int, Receipt]  # the receipts of the splits that are done, by the split's number
    run: RunFolder  # the folder for the tasks' files

    def in_one_step(self, name: str, run: Callable[[str], TaskResult]) -> Steps | None:
        """Return the steps that run a function for each of the splits; None without splits."""
        if not self.tasks:
            return None
        return lambda engine: engine.run(name, run, engine.tasks("Splits", self.tasks), str)


class CorpusResult(msgspec.Struct, Generic[M], frozen=True):
    """A finished job over a corpus."""

    manifest: M
    finished_before: bool  # whether an earlier run had finished it
    splits_kept: int  # the number of splits that earlier runs had finished
    not_split: Sequence[str]  # the files that one worker had to read, though they exceed a split
    seconds: float
    measured: MetricSums


class CorpusJob(ABC, Generic[S, M]):
    """A job over a corpus; `S` are its settings, `M` its manifest."""

    name: ClassVar[str]
    kind: ClassVar[str]  # the kind of task of a split, as in the names of receipts
    text_counter: ClassVar[Metric]  # the counter of the bytes of text
    min_ram: ClassVar[str]  # the memory that a worker needs, for runners that choose machines
    spare: ClassVar[int] = 0  # see `local_workers`
    merged: Sequence[str] = ()  # the names of the tasks that merge all splits
    identity: Mapping[str, Any]  # what the results depend on, without the input, for `__job`
    names: Sequence[str]  # every file that the job may write, except rejects and the manifest
    holds_gil: bool
    # Whether another job runs this one, in a temporary folder within its output. That job has
    # called `check_input`.
    for_another: bool = False
    needs_ids: bool = False  # whether ids are used, so that missing ones need a warning
    folder: OutputFolder  # the job's folder, once it is claimed

    def __init__(self, settings: S, storage: Storage, plan: Plan) -> None:
        self.settings = settings
        self.storage = storage
        self.plan = plan

    # ---- different in each job ----

    @staticmethod
    @abstractmethod
    def restore(manifest: bytes) -> RestoredFolder:
        """Return a finished folder, which is repaired if a file is missing or damaged."""

    @abstractmethod
    def prepare(self) -> None:
        """Write the files that the folder has from the start."""

    @abstractmethod
    def steps(self, remaining: RemainingSplits) -> Steps | None:
        """Return the steps that run the remaining tasks; None if there is none."""

    def stale(self, receipts: Receipts) -> Sequence[str]:
        """Return the merged tasks whose receipts name splits outside the plan.

        Receipts of several runs that were killed may be in one folder.
        """
        return ()

    @abstractmethod
    def manifest(self, plan: Plan, splits: list[Receipt], merged: list[Receipt]) -> M:
        """Return the manifest of a corpus whose splits are all read."""

    @abstractmethod
    def publish(self, manifest: M, splits: list[Receipt], merged: list[Receipt]) -> bytes:
        """Give all files their final names, and return the bytes of the manifest."""

    @abstractmethod
    def read_manifest(self, data: bytes) -> M:
        """Return the manifest of a finished folder."""

    @abstractmethod
    def totals(self, manifest: M) -> CorpusTotals:
        """Return the totals of the corpus in the manifest."""

    # ---- shared ----

    def run(self, progress: Progress) -> CorpusResult[M]:
        """Run the job, or finish what an earlier run began."""
        started = time.monotonic()
        settings, plan = self.settings, self.plan
        if not self.for_another:
            self.check_input(progress)
        identity = {**self.identity, **corpus_input.identity(settings.input, plan)}
        self.folder = folder = claim_folder(
            self.storage,
            settings.output,
            {"job": self.name, **identity},
            [*self.names, *corpus_input.rejects_names(plan)],
            settings.run.overwrite,
            restore=self.restore,
            replace_others=self.for_another,
            warn=progress.warn,
        )
        finished = folder.finished
        splits_kept = len(self._done(folder.receipt, plan))
        measured = MetricSums()
        self.prepare()
        not_split = [] if finished else self._finish(progress, measured)
        manifest = self.read_manifest(self.storage.read_bytes(folder.path(MANIFEST_FILE)))
        if finished:
            self.check(manifest, corpus_input.existing_rejects(self.storage, folder.url, plan))
        seconds = time.monotonic() - started
        return CorpusResult(manifest, finished, splits_kept, not_split, seconds, measured)

    def summary_rows(
        self,
        result: CorpusResult[M],
        *,
        totals: CorpusTotals | None = None,
        warnings: Sequence[str] = (),
        next: Sequence[str],
    ) -> Rows:
        """Return the rows of `CorpusSummary`, with the warnings that the job adds.

        `totals` are needed if the manifest is not of the whole corpus.
        """
        totals = totals or self.totals(result.manifest)
        warnings = [
            *warnings,
            *summary.loss_warnings(totals.lost, self.plan.size),
            *summary.source_warnings(self.settings.input, totals.sources),
        ]
        return {
            "job": self.name,
            "output": self.settings.output,
            "was_finished_before": result.finished_before or None,
            "warnings": warnings or None,
            **summary.inputs_summary(self.plan, result.not_split),
            "documents": totals.documents,
            "rejects": sum(totals.rejects.values()),
            "rejects_by_reason": dict(totals.rejects) or None,
            "lost": summary.losses_summary(totals.lost),
            "seconds": round(result.seconds, 3),
            "next": next,
            **run_summary(self.settings.run, len(self.plan.splits)),
            "text_bytes_per_second": result.measured.rate(self.text_counter, result.seconds),
            **result.measured.to_json(),
        }

    def check_input(self, progress: Progress) -> None:
        """Refuse inputs that cannot be read, before a folder is claimed; warn of others."""
        require_reachable(self.settings.run.runner, inputs=(self.plan.root,))
        if self.plan.links:
            progress.warn(f"links are not followed: {list_few(self.plan.links)}")
        corpus_input.check_early(self.storage, self.plan, self.settings.input)
        for warning in corpus_input.id_warnings(
            self.storage, self.plan, self.settings.input, needed=self.needs_ids
        ):
            progress.warn(warning)

    def _finish(self, progress: Progress, measured: MetricSums) -> list[str]:
        """Run the remaining tasks, finish the folder, and return the `_not_split` files."""
        folder = self.folder
        self.storage.make_folder(folder.path(REJECTS), synced=False)  # `take` syncs it
        plan, receipts = self._read_contiguous(progress, measured)
        splits = [receipts[name] for name in self._split_tasks(plan)]
        merged = [receipts[name] for name in self.merged]
        manifest = self.manifest(plan, splits, merged)
        files = [file.name for receipt in splits for file in receipt.files]
        self.check(manifest, [name for name in files if name.startswith(f"{REJECTS}/")])
        # Publish before the manifest is written: a run that finds the manifest publishes nothing.
        data = self.publish(manifest, splits, merged)
        self.storage.remove_folder_if_empty(folder.path(REJECTS))
        folder.finish(MANIFEST_FILE, data)
        return self._not_split(plan, [row.read_stats(SplitReading) for row in splits])

    def check(self, manifest: M, files: Sequence[str]) -> None:
        """Refuse a corpus that is empty, or has too many unusable records."""
        corpus_input.check_documents(
            self.folder, self.settings.input, self.totals(manifest), self.plan.size, files
        )

    def _read_contiguous(
        self, progress: Progress, measured: MetricSums
    ) -> tuple[Plan, dict[str, Receipt]]:
        """Run tasks until all splits are read, and the slices of every file are contiguous.

        Return the plan as it was read, and the receipts of all tasks.
        """
        folder, plan = self.folder, self.plan
        names = self._split_tasks(plan)
        known: Receipts = {name: folder.receipt(name) for name in (*names, *self.merged)}
        plan = plan.reading_as_one(_read_as_one_before(plan, known.values()))
        while True:
            done = self._done(known.get, plan)
            # Forget merged tasks first: a folder that has one must have all splits.
            old = self.merged if len(done) < len(names) else self.stale(known)
            folder.forget(receipt for name in old if (receipt := known.get(name)))
            folder.forget(
                receipt
                for index, name in enumerate(names)
                if index not in done and (receipt := known.get(name))
            )
            # Its files may be lost in a power cut: their tasks then run again.
            run = folder.new_run(synced=False)
            self._run_tasks(
                RemainingSplits(plan, split_tasks(plan, done), done, run), progress, measured
            )
            # The pipeline has ended without an error, so nothing writes into its folder any more.
            # The folder of a failed pipeline is taken over by the next claim.
            folder.require_ours()
            folder.take(run, all_files=False)
            receipts = folder.all_receipts([*names, *self.merged])
            if len(self._done(receipts.get, plan)) < len(names) or self.stale(receipts):
                raise DataError(
                    f"{folder.url}: a finished task has no receipt that fits the plan: another run "
                    "of this job works in the same folder, or the runner lost a result; when no "
                    "other run works there, run this one again"
                )
            readings = [receipts[name].read_stats(SplitReading) for name in names]
            gaps: frozenset[int] = frozenset()
            if plan.sample_bytes is None:
                gaps = files_with_gaps(plan, *_boundaries(readings))
            if not gaps and _same_as_restored(folder, receipts):
                return plan, receipts
            plan = plan.reading_as_one(gaps)
            folder.restored.clear()
            known = dict(receipts)

    def _run_tasks(
        self, remaining: RemainingSplits, progress: Progress, measured: MetricSums
    ) -> None:
        steps = self.steps(remaining)
        if steps is None:
            return

        names, splits = self._split_tasks(remaining.plan), remaining.plan.splits
        sizes = {
            task: split.size
            for task, split in zip(names, splits, strict=True)
            if split.index not in remaining.done
        }
        # Not the rest of the corpus's size: a sample has few of its bytes.
        before = sum(split.size for split in splits if split.index in remaining.done)

        def watch() -> None:
            finished = remaining.run.finished_tasks()
            stage.at_least(before + sum(sizes.get(task, 0) for task in finished))

        with progress.stage(self.name, remaining.plan.size, "bytes") as stage:
            stage.done_before(before)
            stage.share_of_time = self.share_of_time(remaining)
            run_steps(
                self.settings.run,
                self.name.capitalize(),
                steps,
                len(remaining.tasks) or len(self.merged),
                measured,
                watch,
                min_ram=self.min_ram,
                holds_gil=self.holds_gil,
                spare=self.spare,
                finish=self._finish_template() if template_of(self.settings.run) else None,
            )

    def share_of_time(self, remaining: RemainingSplits) -> ShareOfTime | None:
        """Return the function of the share of time that is over; None if reading takes it all."""
        return None

    def worker_settings(self) -> S:
        """Return the settings for the worker that finishes a job started from a template."""
        return self.settings

    @staticmethod
    def run_from(settings: S, progress: Progress) -> object:
        """Run this job from its settings, on the worker that finishes the job of a template."""
        raise NotImplementedError

    def _finish_template(self) -> Callable[[], str]:
        """Return a function that a worker calls to finish the job, which returns its folder."""
        settings = self.worker_settings()
        for name in settings.input.inputs:
            if name.startswith("@") and is_local(name[1:]):
                raise UsageError(f"must be lists at URLs for a template, got {name}", ("inputs",))
        # No setting of the launching machine; --overwrite must not remove the results.
        run = RunSettings(quiet=True, storage_options=settings.run.storage_options)
        return partial(_finish, type(self), msgspec.structs.replace(settings, run=run))

    def _split_tasks(self, plan: Plan) -> list[str]:
        """Return the names of the tasks of all splits of a plan, in order."""
        return [task_name(self.kind, split.index, len(plan.splits)) for split in plan.splits]

    def _done(self, receipt: Callable[[str], Receipt | None], plan: Plan) -> dict[int, Receipt]:
        """Return the receipts of splits that have the same slices, of files that have not changed.

        A restored split is trusted only by the run that restored it: a killed run may have read
        other files.
        """
        done = {}
        for split, name in zip(plan.splits, self._split_tasks(plan), strict=True):
            of_split = receipt(name)
            reading = None if of_split is None else of_split.read_stats(SplitReading)
            if of_split is None or reading is None or not reading.is_of(plan, split):
                continue
            if self.folder.restored or reading.boundaries is not None:
                done[split.index] = of_split
        return done

    def _not_split(self, plan: Plan, readings: Sequence[SplitReading]) -> list[str]:
        """Return the names of files that one worker had to read, though they exceed a split."""
        separator = self.settings.input.document_separator
        large = {
            file.name
            for file in plan.files
            if file.size > plan.range_bytes and not can_be_cut(file, separator)
        }
        as_one = {
            plan.files[part.file].name
            for split in plan.splits
            for part in split.slices
            if part.end - part.start > plan.range_bytes
        }
        alone = without_units(plan, *_boundaries(readings))
        return sorted({*large, *as_one, *alone})


def _finish(job: type[CorpusJob[S, M]], settings: S) -> str:
    job.run_from(settings, Progress("none"))
    return settings.output


def _same_as_restored(folder: OutputFolder, receipts: Mapping[str, Receipt]) -> bool:
    """Return whether tasks that ran again, to repair a finished folder, wrote the same bytes.

    If not, the corpus has changed, and the restored splits are of the earlier corpus.
    """

    def contents(files: Iterable[FileInfo]) -> list[tuple[int, str]]:
        """Return sizes and hashes; names differ in `work/`, and token counts are only sums."""
        counts = TOKEN_COUNTS_SUFFIX
        return [(each.bytes, each.sha256) for each in files if not each.name.endswith(counts)]

    restored = [(task, files) for task, files in folder.restored.items() if task in receipts]
    return all(contents(receipts[task].files) == contents(files) for task, files in restored)


def _read_as_one_before(plan: Plan, receipts: Iterable[Receipt | None]) -> set[int]:
    """Return the files that an earlier run had to read as one, though the plan splits them."""
    several = {part.file for split in plan.splits for part in split.slices if part.start}
    return {
        file
        for receipt in receipts
        if receipt is not None and "slices" in receipt.stats
        for file, start, end in receipt.read_stats(SplitReading).slices
        if file in several and start == 0 and end == plan.files[file].size
    }


def _boundaries(readings: Sequence[SplitReading]) -> tuple[list[Boundaries], frozenset[int]]:
    """Return the boundaries of slices, and the splits that a finished job has proven contiguous."""
    proven = frozenset(index for index, row in enumerate(readings) if row.boundaries is None)
    return [row for reading in readings for row in reading.boundaries or ()], proven

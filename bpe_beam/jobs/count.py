"""The count job: a corpus to a counts folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby

from msgspec.structs import replace

from bpe_beam.corpus.plan import Plan
from bpe_beam.counts.manifest import CountsManifest, part_name, source_totals
from bpe_beam.counts.word_table import PARTITIONS, WordRules
from bpe_beam.engines.steps import Collection, Engine, Steps, TemplateMade, template_of
from bpe_beam.folders.artifact_names import MANIFEST_FILE, REJECTS
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import RestoredFolder, RestoredTask
from bpe_beam.folders.receipts import Receipt
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.corpus import summary
from bpe_beam.jobs.corpus.job import CorpusJob, Receipts, RemainingSplits
from bpe_beam.messages import command
from bpe_beam.progress import Progress, ShareOfTime
from bpe_beam.settings.count import CountSettings
from bpe_beam.shards.numbering import reject_files
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import json_bytes
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.workers import count_split
from bpe_beam.workers.count_split import first_parts
from bpe_beam.workers.reject_limits import CorpusTotals
from bpe_beam.workers.split_reader import lost_files, reject_reasons
from bpe_beam.workers.split_task import task_name
from bpe_beam.workers.task_results import TaskResult

_MERGING_SHARE = 0.35
"""The usual share of the time in which the words of all splits are merged into parts."""
_PLAN = "__plan"
_CORPUS_PER_TASK = 1_000_000
"""The minimum bytes of the corpus for each task that writes parts: a task takes a millisecond."""
_NO_WORDS: count_split.BlocksReference = ("", "", 0, 0)
"""A reference to no block."""


class CountSummary(summary.CorpusSummary, frozen=True, kw_only=True):
    splits_kept_from_before: int | None
    words: int
    unique_words: int
    sources: summary.SourceFigures | None


def run(
    settings: CountSettings,
    progress: Progress,
    *,
    plan: Plan | None = None,
    added_tokens: tuple[AddedToken, ...] = (),
) -> CountSummary | summary.TemplateSummary:
    """Count a corpus; another job that needs the counts passes `plan` and `added_tokens`."""
    storage = Storage(settings.run.storage_options)
    job = CountJob(settings, storage, plan or plan_of(settings, storage), added_tokens)
    try:
        result = job.run(progress)
    except TemplateMade:
        return summary.TemplateSummary(job.name, settings.output, template_of(settings.run))
    output, manifest = settings.output, result.manifest
    next = [
        command("inspect", output),
        command("train", "--counts", output, "--vocab-size", "32000", "--output", "tokenizer"),
    ]
    return CountSummary(
        **job.summary_rows(result, next=next),
        splits_kept_from_before=result.splits_kept or None,
        text_bytes=manifest.text_bytes,
        words=manifest.words,
        unique_words=manifest.unique_words,
        sources=summary.source_figures(manifest.sources),
    )


def plan_of(settings: CountSettings, storage: Storage, output: str | None = None) -> Plan:
    """Return the plan of the corpus, without files in the output of the command."""
    return corpus_input.plan_of(
        storage,
        settings.input,
        outputs=(output or settings.output, settings.run.summary_file),
        with_places=settings.with_places,
    )


def _parts_per_task(size: int) -> int:
    """Return how many parts a task writes for a corpus of so many bytes."""
    return max(1, PARTITIONS // (1 + size // _CORPUS_PER_TASK))


def rules_of(settings: CountSettings) -> WordRules:
    return WordRules(
        settings.normalizer,
        settings.pretokenizer,
        settings.special_tokens,
        settings.with_places,
    )


class CountJob(CorpusJob[CountSettings, CountsManifest]):
    """Counts each split, then merges the words of all splits into the parts."""

    name = "count"
    kind = "counts"
    text_counter = "text_bytes_read"
    min_ram = "2GB"

    def __init__(
        self,
        settings: CountSettings,
        storage: Storage,
        plan: Plan,
        added_tokens: tuple[AddedToken, ...] = (),
    ) -> None:
        super().__init__(settings, storage, plan)
        self._per_task = _parts_per_task(plan.size)
        self.merged = [task_name("part", i, PARTITIONS) for i in first_parts(self._per_task)]
        self._rules = replace(rules_of(settings), added_tokens=added_tokens)
        self.holds_gil = self._rules.hold_gil
        self.identity = self._rules.identity
        self.names = [
            _PLAN,
            *(part_name(i, PARTITIONS) for i in range(PARTITIONS)),
            *(count_split.words_name(split.index, len(plan.splits)) for split in plan.splits),
        ]

    @staticmethod
    def restore(manifest: bytes) -> RestoredFolder:
        counts = CountsManifest.from_bytes(manifest, MANIFEST_FILE)
        per_task = _parts_per_task(sum(size for _, size in counts.inputs))
        tasks = {}
        for first in first_parts(per_task):
            parts = counts.parts[first:][:per_task]
            files = tuple(part.file for part in parts)
            task = task_name("part", first, PARTITIONS)
            tasks[task] = RestoredTask(files, count_split.PartsStats(parts))
        rejects = tuple(file for file in counts.files if file.name != _PLAN)
        tasks[REJECTS] = RestoredTask(rejects, None)
        return RestoredFolder(counts.job_fingerprint, tasks)

    @staticmethod
    def run_from(settings: CountSettings, progress: Progress) -> object:
        return run(settings, progress)

    def prepare(self) -> None:
        self.folder.write(_PLAN, self._plan_bytes)

    @property
    def _plan_bytes(self) -> bytes:
        return json_bytes(self.plan.to_json())

    def steps(self, remaining: RemainingSplits) -> Steps | None:
        # Parts of an earlier run have the words of all splits: they are written after counting.
        firsts = [
            first
            for first, name in zip(first_parts(self._per_task), self.merged, strict=True)
            if self.folder.receipt(name) is None
        ]
        if not remaining.tasks and not firsts:
            return None
        task = self.task(remaining)
        known = self._known_ranges(remaining.done)
        return lambda engine: count_splits(engine, task, remaining.tasks, known, firsts)

    def task(self, remaining: RemainingSplits) -> count_split.CountTask:
        return count_split.CountTask(
            folder=remaining.run.for_workers(),
            reading=corpus_input.read_settings(self.settings.input),
            rules=self._rules,
            parts_per_task=self._per_task,
        )

    def share_of_time(self, remaining: RemainingSplits) -> ShareOfTime | None:
        tasks = sum(self.folder.receipt(task) is None for task in self.merged)
        parts = min(PARTITIONS, tasks * self._per_task)
        if not self.settings.run.in_process or not parts or not remaining.tasks:
            return None
        size = max(1, remaining.plan.size)
        return lambda now: (
            (1 - _MERGING_SHARE) * now.done / size
            + _MERGING_SHARE * now.counters.get("parts_written", 0) / parts
        )

    def stale(self, receipts: Receipts) -> list[str]:
        merged = {task: receipt for task in self.merged if (receipt := receipts.get(task))}
        if not merged:
            return []
        hashes = {task: count_split.BlocksHash() for task in self.merged}
        splits = filter(None, map(receipts.get, self._split_tasks(self.plan)))
        by_hash = sorted(splits, key=_words_hash)
        for sha256, same in groupby(by_hash, _words_hash):
            stats = (receipt.read_stats(count_split.CountStats) for receipt in same)
            for row in sorted(
                (start, size, first) for each in stats for first, start, size in each.blocks
            ):
                hashes[self.merged[row[2] // self._per_task]].add(sha256, *row[:2])
        return [
            task
            for task, receipt in merged.items()
            if receipt.read_stats(count_split.PartsStats).made_of != hashes[task].hexdigest()
        ]

    def _known_ranges(
        self, done: Mapping[int, Receipt]
    ) -> list[tuple[int, count_split.BlocksReference]]:
        """Return where the words of finished splits are; a receipt names their file first."""
        return [
            row
            for receipt in done.values()
            for row in count_split.block_references(
                self.folder.path(receipt.files[0].name),
                receipt.files[0].sha256,
                receipt.read_stats(count_split.CountStats).blocks,
            )
        ]

    def manifest(self, plan: Plan, splits: list[Receipt], merged: list[Receipt]) -> CountsManifest:
        stats = [receipt.read_stats(count_split.CountedSplit) for receipt in splits]
        stats_of_parts = (receipt.read_stats(count_split.PartsStats) for receipt in merged)
        parts = tuple(part for each in stats_of_parts for part in each.parts)
        sources = (json.loads(split.sources or "{}") for split in stats)  # parsed one at a time
        return CountsManifest(
            **self._rules.of_counts,
            documents=sum(split.documents for split in stats),
            text_bytes=sum(split.text_bytes for split in stats),
            words=sum(split.words for split in stats),
            unique_words=sum(part.unique_words for part in parts),
            word_bytes=sum(part.word_bytes for part in parts),
            rejects=reject_reasons(stats),
            lost=lost_files(stats),
            inputs=tuple((file.name, file.size) for file in plan.files),
            parts=parts,
            sources=source_totals(sources, parts) if self.settings.input.by_source else None,
            files=(
                FileInfo.of(_PLAN, self._plan_bytes),
                *(file for receipt in splits for file in reject_files(receipt)),
            ),
            job_fingerprint=self.folder.fingerprint,
        )

    def publish(
        self, manifest: CountsManifest, splits: list[Receipt], merged: list[Receipt]
    ) -> bytes:
        receipts = [*splits, *merged]
        self.folder.require_whole(receipts)
        self.folder.remove_strays(corpus_input.rejects_names(self.plan), receipts)
        return manifest.to_bytes()

    def read_manifest(self, data: bytes) -> CountsManifest:
        return CountsManifest.from_bytes(data, self.folder.path(MANIFEST_FILE))

    def totals(self, manifest: CountsManifest) -> CorpusTotals:
        return CorpusTotals(manifest.documents, manifest.rejects, manifest.lost, manifest.sources)


def _words_hash(receipt: Receipt) -> str:
    return receipt.files[0].sha256


def count_splits(
    engine: Engine,
    task: count_split.CountTask,
    tasks: Iterable[str],
    known: Iterable[tuple[int, count_split.BlocksReference]],
    firsts: Sequence[int],
) -> Collection:
    """Count splits, write parts of a counts folder, and return their names.

    `firsts` are the first parts of the tasks that write them.
    """
    # Each task gets a reference to no block, so that parts without words are written too.
    rows = [(first, (first, _NO_WORDS)) for first in firsts]
    rows += _by_task(task, firsts, known)
    counted = engine.run(
        "CountSplit",
        partial(_count_split, task, frozenset(firsts)),
        engine.tasks("Splits", tasks),
        tuple[int, tuple[int, count_split.BlocksReference]],
    )
    gathered = engine.gather("GatherPartitions", counted, rows)
    return engine.run("WritePart", partial(count_split.write_parts, task), gathered, str)


def _count_split(task: count_split.CountTask, firsts: frozenset[int], element: str) -> TaskResult:
    """Count a split; the outputs are references to its blocks, each with its partition and task."""
    counted = count_split.count_split(task, element)
    return counted._replace(outputs=_by_task(task, firsts, counted.outputs))


def _by_task(
    task: count_split.CountTask,
    firsts: Sequence[int] | frozenset[int],
    blocks: Iterable[tuple[int, count_split.BlocksReference]],
) -> list[tuple[int, tuple[int, count_split.BlocksReference]]]:
    """Return the blocks of some tasks, each with the task that writes its partition."""
    rows = ((row[0] - row[0] % task.parts_per_task, row) for row in blocks)
    return [row for row in rows if row[0] in firsts]

"""The count job: a corpus to a counts folder."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from bpe_beam.corpus.plan import Plan
from bpe_beam.counts.manifest import CountsManifest, part_name, source_totals
from bpe_beam.counts.word_counter import WordRules
from bpe_beam.counts.word_table import PARTITIONS
from bpe_beam.engines.beam import run_pipeline, summary_of
from bpe_beam.engines.templates import TemplateMade, summary_of_template
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder, RestoredTask
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.jobs import corpus_input
from bpe_beam.jobs.corpus_checks import (
    check_documents,
    check_first_records,
    loss_warnings,
    losses_summary,
)
from bpe_beam.jobs.corpus_input import ReadCorpus
from bpe_beam.jobs.source_summary import source_facts, source_warnings
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import json_bytes
from bpe_beam.transforms.jobs.count_splits import CountSplits
from bpe_beam.transforms.metrics import Measured
from bpe_beam.workers import metric_names
from bpe_beam.workers.count_split import (
    CountStats,
    CountTask,
    PartStats,
    RangeReference,
    made_of,
    range_references,
    words_name,
)
from bpe_beam.workers.split_stats import lost_rows, reject_reasons
from bpe_beam.workers.split_task import split_tasks, task_name

_PLAN = "plan.json"


def run(settings: CountSettings, progress: Progress, *, plan: Plan | None = None) -> dict[str, Any]:
    """Count a corpus.

    Args:
        settings: What to do.
        progress: Where it is shown.
        plan: The plan of the inputs, if it has been made already.

    Returns:
        The summary.

    Raises:
        UsageError: Settings that cannot work, an output folder that is not free.
        DataError: A corpus that is empty or has too many rejects; storage that fails.
    """
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    plan = plan or corpus_input.plan_of(
        storage, settings.input, output=settings.output, with_places=settings.with_places
    )
    rules = WordRules(
        settings.normalizer, settings.pretokenizer, settings.special_tokens, settings.with_places
    )
    require_reachable(settings.run.runner, inputs=(plan.root,))
    check_first_records(storage, plan, settings.input)
    folder = OutputFolder.claim(
        storage,
        settings.output,
        {"job": "count", **asdict(rules), **corpus_input.identity(settings.input, plan)},
        _names(plan),
        settings.run.overwrite,
        restore=_restore,
    )
    resumed = folder.finished
    kept = len(corpus_input.done_splits(folder, plan, "counts"))
    measured = Measured()
    _write_plan(folder, plan)
    not_split: list[str] = []
    if not folder.finished:
        try:
            not_split = _count(settings, plan, rules, folder, progress, measured)
        except TemplateMade:
            return summary_of_template("count", settings)
    manifest = CountsManifest.from_bytes(
        storage.read_bytes(folder.path(MANIFEST_FILE)), folder.path(MANIFEST_FILE)
    )
    if resumed:
        check_finished(storage, settings.output, settings.input, plan, manifest)
    inputs = corpus_input.inputs_summary(plan, not_split)
    return {
        **_summary(settings, manifest, inputs, kept, resumed, time.monotonic() - started),
        **summary_of(settings.run, len(plan.splits)),
        "text_bytes_per_second": measured.rate(
            metric_names.TEXT_BYTES_READ, time.monotonic() - started
        ),
        **measured.to_json(),
    }


def check_finished(
    storage: Storage, url: str, given: InputSettings, plan: Plan, manifest: CountsManifest
) -> None:
    """Refuse finished counts with more rejects or larger losses than are allowed now.

    Args:
        storage: The storage client.
        url: The counts' folder.
        given: Tells how many rejects, and what losses, are too many.
        plan: What was counted.
        manifest: The counts'.

    Raises:
        DataError: Says where to look.
    """
    files = corpus_input.rejects_there(storage, url, plan)
    _check_documents(storage, url, given, plan, manifest, files)


def _check_documents(
    storage: Storage,
    url: str,
    given: InputSettings,
    plan: Plan,
    manifest: CountsManifest,
    files: Sequence[str],
) -> None:
    check_documents(
        storage,
        url,
        given,
        documents=manifest.documents,
        rejects=sum(manifest.rejects.values()),
        losses=manifest.lost,
        stored_bytes=plan.size,
        files=files,
    )


def _write_plan(folder: OutputFolder, plan: Plan) -> None:
    """Write the plan beside the counts, unless it is there."""
    data = json_bytes(plan.to_json())
    if not folder.has_content(_PLAN, data):
        folder.storage.write_bytes(folder.path(_PLAN), data)


def _names(plan: Plan) -> list[str]:
    """Every file that the job may write."""
    splits = len(plan.splits)
    return [
        _PLAN,
        *(part_name(i, PARTITIONS) for i in range(PARTITIONS)),
        *(words_name(split.index, splits) for split in plan.splits),
        *corpus_input.rejects_names(plan),
    ]


def _restore(manifest: bytes) -> Mapping[str, RestoredTask]:
    """Return the parts of a finished folder, from which it is repaired if one is missing."""
    return {
        task_name("part", i, PARTITIONS): RestoredTask((FileInfo.from_json(part),), part)
        for i, part in enumerate(json.loads(manifest)["parts"])
    }


def _count(
    settings: CountSettings,
    plan: Plan,
    rules: WordRules,
    folder: OutputFolder,
    progress: Progress,
    measured: Measured,
) -> list[str]:
    """Run the tasks that are left, and finish the folder; return the files that were not split."""
    folder.storage.make_folder(folder.path("rejects"))
    parts = [task_name("part", i, PARTITIONS) for i in range(PARTITIONS)]

    def run_splits(plan: Plan, done: Mapping[int, Receipt], attempt: RunFolder) -> None:
        # Parts of an earlier run are of all splits: they were begun when all were counted.
        parts_left = [i for i, part in enumerate(parts) if folder.receipt(part) is None]
        tasks = split_tasks(plan, done)
        if not tasks and not parts_left:
            return
        task = CountTask(
            folder=attempt.for_workers(),
            reading=corpus_input.read_settings(settings.input),
            rules=rules,
            splits=len(plan.splits),
            by_source=settings.input.by_source,
        )
        known = _known_ranges(folder, done)
        with progress.stage("count", plan.size, "bytes") as stage:
            stage.advance(corpus_input.bytes_read(plan, "counts", done))
            run_pipeline(
                settings.run,
                "Count",
                lambda pool: CountSplits(replace(task, pool=pool), tasks, known, parts_left),
                len(tasks) or len(parts_left),
                measured,
                lambda: stage.seen(
                    corpus_input.bytes_read(plan, "counts", done, attempt.finished_tasks())
                ),
                holds_gil=rules.hold_gil,
                finish=("count", settings),
            )

    def stale(receipts: Mapping[str, Receipt | None]) -> list[str]:
        names = corpus_input.split_task_names(plan, "counts")
        return _stale_parts(folder, names, parts, receipts)

    read = corpus_input.read_whole(folder, plan, "counts", settings.input, run_splits, parts, stale)
    receipts = [*read.splits, *read.merged]
    manifest = _manifest(rules, read, settings.input.by_source)
    _check_documents(
        folder.storage, folder.url, settings.input, plan, manifest, _rejects_files(receipts)
    )
    folder.require_whole(receipts)
    # Before the end: once it is finished, a job that was killed has nothing more to do.
    folder.remove_strays(corpus_input.rejects_names(plan), receipts)
    folder.storage.remove_folder_if_empty(folder.path("rejects"))
    folder.finish(MANIFEST_FILE, manifest.to_json())
    return read.not_split


def _known_ranges(
    folder: OutputFolder, done: Mapping[int, Receipt]
) -> list[tuple[int, RangeReference]]:
    """Return where the words of finished splits are; a receipt names their file first."""
    return [
        row
        for receipt in done.values()
        for row in range_references(
            folder.path(receipt.files[0].name),
            receipt.files[0].sha256,
            CountStats.from_json(receipt.stats).ranges,
        )
    ]


def _stale_parts(
    folder: OutputFolder,
    splits: list[str],
    parts: list[str],
    receipts: Mapping[str, Receipt | None],
) -> list[str]:
    """Return the parts that are not made of these splits, but of those that another run read."""
    ranges: list[list[RangeReference]] = [[] for _ in range(PARTITIONS)]
    done = {i: found for i, split in enumerate(splits) if (found := receipts.get(split))}
    for partition, reference in _known_ranges(folder, done):
        ranges[partition].append(reference)
    return [
        part
        for part, references in zip(parts, ranges, strict=True)
        if (found := receipts.get(part)) is not None
        and PartStats.from_json(found.stats).made_of != made_of(references)
    ]


def _rejects_files(receipts: Iterable[Receipt]) -> list[str]:
    names = (file.name for receipt in receipts for file in receipt.files)
    return [name for name in names if name.startswith("rejects/")]


def _manifest(rules: WordRules, read: ReadCorpus, by_source: bool) -> CountsManifest:
    splits = [CountStats.from_json(receipt.stats) for receipt in read.splits]
    parts = tuple(PartStats.from_json(receipt.stats).part for receipt in read.merged)
    sources = (json.loads(split.sources or "{}") for split in splits)  # parsed one at a time
    return CountsManifest(
        **asdict(rules),
        documents=sum(split.documents for split in splits),
        text_bytes=sum(split.text_bytes for split in splits),
        words=sum(split.words for split in splits),
        unique_words=sum(part.unique_words for part in parts),
        word_bytes=sum(part.word_bytes for part in parts),
        rejects=reject_reasons(splits),
        lost=lost_rows(splits),
        inputs=tuple((file.name, file.size) for file in read.plan.files),
        parts=parts,
        sources=source_totals(sources, parts) if by_source else None,
    )


def _summary(
    settings: CountSettings,
    manifest: CountsManifest,
    inputs: Mapping[str, Any],
    kept: int,
    resumed: bool,
    seconds: float,
) -> dict[str, Any]:
    return {
        "job": "count",
        "output": settings.output,
        "was_finished_before": resumed or None,
        "warnings": [
            *loss_warnings(manifest.lost, sum(size for _, size in manifest.inputs)),
            *source_warnings(settings.input, manifest.sources),
        ]
        or None,
        "splits_kept_from_before": kept or None,
        **inputs,
        "documents": manifest.documents,
        "text_bytes": manifest.text_bytes,
        "words": manifest.words,
        "unique_words": manifest.unique_words,
        "sources": source_facts(manifest),
        "rejects": sum(manifest.rejects.values()),
        "rejects_by_reason": manifest.rejects or None,
        "lost": losses_summary(manifest.lost),
        "seconds": round(seconds, 3),
        "next": [
            f"bpe-beam inspect {settings.output}",
            f"bpe-beam train --counts {settings.output} --vocab-size 32000 --output tokenizer",
        ],
    }

"""The tokenize job: a corpus and a tokenizer to a folder of token shards."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bpe_beam.corpus.plan import Plan, stored_bytes
from bpe_beam.engines.beam import run_pipeline, summary_of
from bpe_beam.engines.templates import TemplateMade, summary_of_template
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, TOKENIZER_FILE
from bpe_beam.folders.output_folder import OutputFolder, RestoredTask
from bpe_beam.folders.receipts import WORK, Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.jobs import corpus_input
from bpe_beam.jobs.corpus_checks import (
    check_documents,
    check_first_records,
    loss_warnings,
    losses_summary,
)
from bpe_beam.jobs.source_summary import shard_source_facts, source_warnings
from bpe_beam.progress import Progress
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.field import identity_of
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import Manifest
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import Shard
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms.jobs.tokenize_splits import TokenizeSplits
from bpe_beam.transforms.metrics import Measured
from bpe_beam.workers import metric_names
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.shard_manifest import final_names, manifest_of
from bpe_beam.workers.shard_manifest import plan_of as manifest_plan
from bpe_beam.workers.split_stats import SplitReading
from bpe_beam.workers.split_task import rejects_name, split_tasks
from bpe_beam.workers.tokenize_split import TokenizeStats, TokenizeTask


def run(settings: TokenizeSettings, progress: Progress) -> dict[str, Any]:
    """Tokenize a corpus.

    Args:
        settings: What to do.
        progress: Where it is shown.

    Returns:
        The summary.

    Raises:
        UsageError: Settings that cannot work, an output folder that is not free.
        DataError: A corpus that is empty or has too many rejects; storage that fails.
    """
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(settings.tokenizer, storage=storage)
    encoding = Encoding.of(tokenizer, **framing(settings))
    plan = corpus_input.plan_of(storage, settings.input, output=settings.output)
    require_reachable(settings.run.runner, inputs=(plan.root,))
    check_first_records(storage, plan, settings.input)
    folder = OutputFolder.claim(
        storage,
        settings.output,
        {
            "job": "tokenize",
            "tokenizer": tokenizer.fingerprint,
            "format": settings.format,
            **framing(settings),
            **corpus_input.identity(settings.input, plan),
        },
        _names(settings, plan),
        settings.run.overwrite,
        restore=_restore,
    )
    resumed = folder.finished
    if not resumed or not folder.has_content(TOKENIZER_FILE, tokenizer.to_json().encode()):
        tokenizer.save(folder.path(TOKENIZER_FILE), storage=storage)
    kept = len(corpus_input.done_splits(folder, plan, "shard"))
    not_split: list[str] = []
    measured = Measured()
    if not folder.finished:
        try:
            not_split = _tokenize(settings, plan, tokenizer, encoding, folder, progress, measured)
        except TemplateMade:
            return summary_of_template("tokenize", settings)
    manifest = Manifest.from_bytes(storage.read_bytes(folder.path(MANIFEST_FILE)))
    if resumed:
        _check_documents(settings, folder, plan, manifest)
    inputs = corpus_input.inputs_summary(plan, not_split)
    return {
        **_summary(settings, manifest, inputs, kept, resumed, time.monotonic() - started),
        **summary_of(settings.run, len(plan.splits)),
        "text_bytes_per_second": measured.rate(
            metric_names.TEXT_BYTES_TOKENIZED, time.monotonic() - started
        ),
        **measured.to_json(),
    }


def framing(settings: TokenizeSettings) -> dict[str, Any]:
    """Settings of encoding, as `job.json` and the manifest hold them."""
    return {key: value for key, value in identity_of(settings).items() if key != "format"}


def _names(settings: TokenizeSettings, plan: Plan) -> list[str]:
    """Every file that the job may write."""
    shards = [shard_name(split.index, len(plan.splits)) for split in plan.splits]
    files = [
        f"{shard}{suffix}" for shard in shards for suffix in shard_format(settings.format).suffixes
    ]
    # The final names are these where every split has tokens; see `OutputFolder.publish`.
    return [
        TOKENIZER_FILE,
        *(f"{WORK}/{file}" for file in files),
        *files,
        *corpus_input.rejects_names(plan),
    ]


def _restore(data: bytes) -> Mapping[str, RestoredTask]:
    """Return the splits of a finished folder, from which it is repaired if a file is missing."""
    manifest = Manifest.from_bytes(data)
    plan = manifest_plan(manifest, "")
    rejects = {file.name: file for file in manifest.reject_files}
    tasks: dict[str, RestoredTask] = {}
    for row in manifest.splits:
        rejected = rejects.get(rejects_name(row.split, len(plan.splits)))
        files = row.files if isinstance(row, Shard) else ()
        stats = TokenizeStats(
            documents=row.documents,
            text_bytes=row.text_bytes,
            rejects={},
            lost=(),
            reading=SplitReading.restored(plan.splits[row.split]),
            tokens=row.tokens if isinstance(row, Shard) else 0,
            sources=row.sources,
        )
        # The manifest has the sum of reject reasons only: a split with rejects is read again.
        tasks[shard_name(row.split, len(plan.splits))] = RestoredTask(
            files if rejected is None else (*files, rejected),
            stats.to_json() if rejected is None else None,
        )
    return tasks


def _tokenize(
    settings: TokenizeSettings,
    plan: Plan,
    tokenizer: Tokenizer,
    encoding: Encoding,
    folder: OutputFolder,
    progress: Progress,
    measured: Measured,
) -> list[str]:
    """Run the tasks that are left, and finish the folder; return the files that were not split."""
    folder.storage.make_folder(folder.path("rejects"))

    def run_splits(plan: Plan, done: Mapping[int, Receipt], attempt: RunFolder) -> None:
        tasks = split_tasks(plan, done)
        if not tasks:
            return
        task = TokenizeTask(
            folder=attempt.for_workers(),
            reading=corpus_input.read_settings(settings.input),
            encoding=encoding.kept_at(folder.storage, folder.path(TOKENIZER_FILE)),
            splits=len(plan.splits),
            shard_format=settings.format,
        )
        with progress.stage("tokenize", plan.size, "bytes") as stage:
            stage.advance(corpus_input.bytes_read(plan, "shard", done))
            run_pipeline(
                settings.run,
                "Tokenize",
                lambda pool: TokenizeSplits(replace(task, pool=pool), tasks),
                len(tasks),
                measured,
                lambda: stage.seen(
                    corpus_input.bytes_read(plan, "shard", done, attempt.finished_tasks())
                ),
                holds_gil=tokenizer.holds_gil,
                finish=("tokenize", replace(settings, tokenizer=folder.path(TOKENIZER_FILE))),
            )

    read = corpus_input.read_whole(folder, plan, "shard", settings.input, run_splits)
    manifest = manifest_of(
        read.plan,
        read.splits,
        tokenizer,
        {**framing(settings), **identity_of(settings.input)},
        settings.format,
    )
    _check_documents(settings, folder, plan, manifest)
    # Before the end: once it is finished, a job that was killed has nothing more to do.
    folder.publish(final_names(read.splits))
    folder.storage.remove_folder_if_empty(folder.path("rejects"))
    folder.finish(MANIFEST_FILE, manifest.to_bytes())
    return read.not_split


def _check_documents(
    settings: TokenizeSettings, folder: OutputFolder, plan: Plan, manifest: Manifest
) -> None:
    check_documents(
        folder.storage,
        folder.url,
        settings.input,
        documents=manifest.totals.documents,
        rejects=manifest.totals.rejects,
        losses=manifest.lost,
        stored_bytes=plan.size,
        files=[file.name for file in manifest.reject_files],
    )
    totals = manifest.totals
    if not totals.tokens:
        raise DataError(
            f"there is no token: the {totals.documents:,} documents of "
            f"{', '.join(settings.input.inputs)} are empty, or the tokenizer makes nothing of them"
        )


def _summary(
    settings: TokenizeSettings,
    manifest: Manifest,
    inputs: Mapping[str, Any],
    kept: int,
    resumed: bool,
    seconds: float,
) -> dict[str, Any]:
    totals = manifest.totals
    return {
        "job": "tokenize",
        "output": settings.output,
        "was_finished_before": resumed or None,
        "warnings": [
            *loss_warnings(manifest.lost, stored_bytes(manifest.plan)),
            *source_warnings(settings.input, manifest.sources),
        ]
        or None,
        "shards_kept_from_before": kept or None,
        **inputs,
        "documents": totals.documents,
        "text_bytes": totals.text_bytes,
        "tokens": totals.tokens,
        "bytes_per_token": totals.text_bytes / totals.tokens if totals.tokens else None,
        "sources": shard_source_facts(manifest),
        "shards": totals.shards,
        "shards_bytes": sum(file.bytes for shard in manifest.shards for file in shard.files),
        "rejects": totals.rejects,
        "rejects_by_reason": dict(manifest.reject_reasons) or None,
        "lost": losses_summary(manifest.lost),
        "seconds": round(seconds, 3),
        "next": [f"bpe-beam verify {settings.output}", f"bpe-beam inspect {settings.output}"],
    }

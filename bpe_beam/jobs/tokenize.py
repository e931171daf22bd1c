"""The tokenize job: a corpus and a tokenizer to a folder of token shards."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import apache_beam as beam

from bpe_beam.corpus.plan import Plan, stored_bytes
from bpe_beam.engines.beam import run_pipeline, summary_of
from bpe_beam.engines.templates import FinishJob, TemplateMade, summary_of_template, template_of
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, TOKENIZER_FILE
from bpe_beam.folders.job_folder import WORK, JobFolder, Receipt
from bpe_beam.folders.output_folder import OutputFolder
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
from bpe_beam.shards.numbering import numbered, shard_name
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms.jobs.tokenize_splits import TokenizeSplits
from bpe_beam.transforms.metrics import Measured
from bpe_beam.workers import metric_names as measures
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.shard_manifest import manifest_of
from bpe_beam.workers.shard_manifest import plan_of as manifest_plan
from bpe_beam.workers.split_task import piece_name, rejects_name, restored_facts, works_of
from bpe_beam.workers.tokenize_split import TokenizeTask

_FACTS = ("documents", "text_bytes", "tokens", "sources")


def run(settings: TokenizeSettings, progress: Progress) -> dict[str, Any]:
    """Tokenizes a corpus.

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
    if not resumed or not folder.holds(TOKENIZER_FILE, tokenizer.to_json().encode()):
        tokenizer.save(folder.path(TOKENIZER_FILE), storage=storage)
    kept = len(corpus_input.done_splits(folder, plan, "shard"))
    not_cut: list[str] = []
    measured = Measured()
    if not folder.finished:
        try:
            not_cut = _tokenize(settings, plan, tokenizer, encoding, folder, progress, measured)
        except TemplateMade:
            return summary_of_template("tokenize", settings)
    manifest = Manifest.from_bytes(storage.read_bytes(folder.path(MANIFEST_FILE)))
    if resumed:
        _check_documents(settings, folder, plan, manifest)
    inputs = corpus_input.inputs_summary(plan, not_cut)
    return {
        **_summary(settings, manifest, inputs, kept, resumed, time.monotonic() - started),
        **summary_of(settings.run, len(plan.splits)),
        "text_bytes_per_second": measured.rate(
            measures.TEXT_BYTES_TOKENIZED, time.monotonic() - started
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


def _restore(data: bytes) -> Mapping[str, Mapping[str, Any]]:
    """The splits of a finished folder, for it to be mended if a file is missing."""
    manifest = Manifest.from_bytes(data)
    plan = manifest_plan(manifest, "")
    rejects = {file.name: asdict(file) for file in manifest.reject_files}
    pieces: dict[str, dict[str, Any]] = {}
    for row in manifest.splits:
        name = rejects_name(row.split, len(plan.splits))
        values = {"tokens": 0, "files": [], **row.to_json()}
        facts: dict[str, Any] = {"rejects": {}}
        facts |= {key: values[key] for key in _FACTS if key in values}
        facts |= restored_facts(plan.splits[row.split])
        # The manifest has the reasons of rejects in sum only: a shard with some is made again.
        pieces[piece_name("shard", row.split, len(plan.splits))] = {
            "files": values["files"] + ([rejects[name]] if name in rejects else []),
            "facts": None if name in rejects else facts,
        }
    return pieces


def _tokenize(
    settings: TokenizeSettings,
    plan: Plan,
    tokenizer: Tokenizer,
    encoding: Encoding,
    folder: OutputFolder,
    progress: Progress,
    measured: Measured,
) -> list[str]:
    """Does what is left to do, and finishes the folder; returns the files that were not cut."""
    folder.storage.make_folder(folder.path("rejects"))
    shards = [shard_name(split.index, len(plan.splits)) for split in plan.splits]

    def run_splits(plan: Plan, done: Mapping[int, Receipt], attempt: JobFolder) -> None:
        works = works_of(plan, done)
        if not works:
            return
        task = TokenizeTask(
            receipts=attempt.writer(),
            reading=corpus_input.read_settings(settings.input),
            encoding=encoding.kept_at(folder.storage, folder.path(TOKENIZER_FILE)),
            splits=len(plan.splits),
            shard_format=settings.format,
        )
        with progress.stage("tokenize", plan.size, "bytes") as stage:
            stage.advance(corpus_input.bytes_read(plan, "shard", done))

            def build(pipeline: beam.Pipeline, pool: str | None) -> None:
                made = pipeline | "Tokenize" >> TokenizeSplits(replace(task, pool=pool), works)
                if template_of(settings.run):
                    there = replace(settings, tokenizer=folder.path(TOKENIZER_FILE))
                    made | "Finish" >> FinishJob("tokenize", there)

            run_pipeline(
                settings.run,
                build,
                len(works),
                measured,
                lambda: stage.seen(
                    corpus_input.bytes_read(plan, "shard", done, attempt.finished_pieces())
                ),
                holds_gil=tokenizer.holds_gil,
            )

    plan, receipts = corpus_input.read_whole(folder, plan, "shard", run_splits)
    made = [receipts[shard] for shard in shards]
    manifest = manifest_of(
        plan,
        made,
        tokenizer,
        {**framing(settings), **identity_of(settings.input)},
        settings.format,
    )
    _check_documents(settings, folder, plan, manifest)
    # Before the end: once it is finished, a job that was killed has nothing more to do.
    folder.publish(numbered(made))
    folder.storage.remove_folder_if_empty(folder.path("rejects"))
    folder.finish(MANIFEST_FILE, manifest.to_bytes())
    return corpus_input.not_cut(
        plan, [receipts[shard]["facts"] for shard in shards], settings.input
    )


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

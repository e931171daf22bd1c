"""The count job: a corpus to a counts folder."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import apache_beam as beam

from bpe_beam.corpus.plan import Plan
from bpe_beam.counts.manifest import CountsManifest, CountsPart, part_name, source_totals
from bpe_beam.counts.word_counter import WordRules
from bpe_beam.counts.word_table import PARTITIONS
from bpe_beam.engines.beam import run_pipeline, summary_of
from bpe_beam.engines.templates import FinishJob, TemplateMade, summary_of_template, template_of
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.job_folder import JobFolder, Receipt
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.jobs import corpus_input
from bpe_beam.jobs.corpus_checks import (
    check_documents,
    check_first_records,
    loss_warnings,
    losses_summary,
)
from bpe_beam.jobs.source_summary import source_facts, source_warnings
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import json_bytes
from bpe_beam.transforms.jobs.count_splits import CountSplits
from bpe_beam.transforms.metrics import Measured
from bpe_beam.workers import metric_names as measures
from bpe_beam.workers.count_split import (
    MADE_OF,
    RANGES,
    SOURCES,
    CountTask,
    RangePlace,
    made_of,
    range_places,
    words_name,
)
from bpe_beam.workers.shard_manifest import lost_rows, reject_reasons
from bpe_beam.workers.split_task import piece_name, works_of

_PLAN = "plan.json"


def run(settings: CountSettings, progress: Progress, *, plan: Plan | None = None) -> dict[str, Any]:
    """Counts a corpus.

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
    not_cut: list[str] = []
    if not folder.finished:
        try:
            not_cut = _count(settings, plan, rules, folder, progress, measured)
        except TemplateMade:
            return summary_of_template("count", settings)
    manifest = CountsManifest.from_bytes(
        storage.read_bytes(folder.path(MANIFEST_FILE)), folder.path(MANIFEST_FILE)
    )
    if resumed:
        check_finished(storage, settings.output, settings.input, plan, manifest)
    inputs = corpus_input.inputs_summary(plan, not_cut)
    return {
        **_summary(settings, manifest, inputs, kept, resumed, time.monotonic() - started),
        **summary_of(settings.run, len(plan.splits)),
        "text_bytes_per_second": measured.rate(
            measures.TEXT_BYTES_READ, time.monotonic() - started
        ),
        **measured.to_json(),
    }


def check_finished(
    storage: Storage, url: str, given: InputSettings, plan: Plan, manifest: CountsManifest
) -> None:
    """Refuse finished counts with more rejects or larger losses than are allowed now.

    Args:
        storage: The door to storage.
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
    if not folder.holds(_PLAN, data):
        folder.storage.write_bytes(folder.path(_PLAN), data)


def _names(plan: Plan) -> list[str]:
    """Every file that the job may write."""
    splits = len(plan.splits)
    return [
        _PLAN,
        *(part_name(i, PARTITIONS) for i in range(PARTITIONS)),
        *(f"work/{words_name(split.index, splits)}" for split in plan.splits),
        *corpus_input.rejects_names(plan),
    ]


def _restore(manifest: bytes) -> Mapping[str, Mapping[str, Any]]:
    """Return the parts of a finished folder, from which it is mended if one is missing."""
    parts = json.loads(manifest)["parts"]
    return {
        piece_name("part", i, PARTITIONS): {
            "files": [{key: part[key] for key in ("name", "bytes", "sha256")}],
            "facts": part,
        }
        for i, part in enumerate(parts)
    }


def _count(
    settings: CountSettings,
    plan: Plan,
    rules: WordRules,
    folder: OutputFolder,
    progress: Progress,
    measured: Measured,
) -> list[str]:
    """Do what is left to do, and finish the folder; return the files that were not split."""
    folder.storage.make_folder(folder.path("rejects"))
    splits = [piece_name("counts", split.index, len(plan.splits)) for split in plan.splits]
    parts = [piece_name("part", i, PARTITIONS) for i in range(PARTITIONS)]

    def run_splits(plan: Plan, done: Mapping[int, Receipt], attempt: JobFolder) -> None:
        # Parts of an earlier run stand for all splits: they were begun when all were counted.
        parts_left = [i for i, part in enumerate(parts) if folder.receipt(part) is None]
        works = works_of(plan, done)
        if not works and not parts_left:
            return
        task = CountTask(
            receipts=attempt.writer(),
            reading=corpus_input.read_settings(settings.input),
            rules=rules,
            splits=len(plan.splits),
            by_source=settings.input.by_source,
        )
        known = _known(folder, done)
        with progress.stage("count", plan.size, "bytes") as stage:
            stage.advance(corpus_input.bytes_read(plan, "counts", done))

            def build(pipeline: beam.Pipeline, pool: str | None) -> None:
                count = CountSplits(replace(task, pool=pool), works, known, parts_left)
                made = pipeline | "Count" >> count
                if template_of(settings.run):
                    made | "Finish" >> FinishJob("count", settings)

            run_pipeline(
                settings.run,
                build,
                len(works) or len(parts_left),
                measured,
                lambda: stage.seen(
                    corpus_input.bytes_read(plan, "counts", done, attempt.finished_pieces())
                ),
                holds_gil=rules.hold_gil,
            )

    plan, receipts = corpus_input.read_whole(
        folder, plan, "counts", run_splits, parts, lambda known: _stale(folder, splits, known)
    )
    manifest = _manifest(rules, plan, receipts, settings.input.by_source)
    _check_documents(
        folder.storage, folder.url, settings.input, plan, manifest, _rejects_files(receipts)
    )
    folder.require_whole(receipts.values())
    # Before the end: once it is finished, a job that was killed has nothing more to do.
    folder.remove_strays(corpus_input.rejects_names(plan), receipts.values())
    folder.storage.remove_folder_if_empty(folder.path("rejects"))
    folder.finish(MANIFEST_FILE, manifest.to_json())
    return corpus_input.not_cut(plan, [receipts[s]["facts"] for s in splits], settings.input)


def _known(folder: OutputFolder, done: Mapping[int, Receipt]) -> list[tuple[int, RangePlace]]:
    """Where the words of finished splits stand; a receipt names their file first."""
    return [
        row
        for receipt in done.values()
        for file in receipt["files"][:1]
        for row in range_places(folder.path(file["name"]), file["sha256"], receipt["facts"][RANGES])
    ]


def _stale(
    folder: OutputFolder, splits: list[str], receipts: Mapping[str, Receipt | None]
) -> list[str]:
    """The parts that are not made of these splits, but of what another run read."""
    places: list[list[RangePlace]] = [[] for _ in range(PARTITIONS)]
    done = {i: found for i, split in enumerate(splits) if (found := receipts.get(split))}
    for partition, place in _known(folder, done):
        places[partition].append(place)
    parts = {i: receipts.get(piece_name("part", i, PARTITIONS)) for i in range(PARTITIONS)}
    return [
        part["piece"]
        for i, part in parts.items()
        if part is not None and part["facts"].get(MADE_OF) != made_of(places[i])
    ]


def _rejects_files(receipts: Mapping[str, Receipt]) -> list[str]:
    return [
        file["name"]
        for receipt in receipts.values()
        for file in receipt["files"]
        if file["name"].startswith("rejects/")
    ]


def _manifest(
    rules: WordRules, plan: Plan, receipts: Mapping[str, Receipt], by_source: bool
) -> CountsManifest:
    splits = [
        receipts[piece_name("counts", split.index, len(plan.splits))]["facts"]
        for split in plan.splits
    ]
    parts = tuple(
        CountsPart(**_without_origin(receipts[piece_name("part", i, PARTITIONS)]["facts"]))
        for i in range(PARTITIONS)
    )
    sources = (row[SOURCES] for row in splits)  # parsed one at a time
    totals = corpus_input.sums(splits, "documents", "text_bytes", "words")
    return CountsManifest(
        **asdict(rules),
        documents=totals["documents"],
        text_bytes=totals["text_bytes"],
        words=totals["words"],
        unique_words=sum(part.unique_words for part in parts),
        word_bytes=sum(part.word_bytes for part in parts),
        rejects=reject_reasons(splits),
        lost=lost_rows(splits),
        inputs=tuple((file.name, file.size) for file in plan.files),
        parts=parts,
        sources=source_totals(map(json.loads, sources), parts) if by_source else None,
    )


def _without_origin(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != MADE_OF}


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

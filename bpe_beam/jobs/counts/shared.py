"""Shared by the jobs on counts folders: the parts of a new folder, chosen sources, the summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from bpe_beam.counts.manifest import CountsManifest, CountsPart, part_name, read_manifest
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.output_folder import RestoredFolder, RestoredTask
from bpe_beam.jobs.corpus.summary import Rows, source_figures
from bpe_beam.messages import command, list_few
from bpe_beam.progress import Progress
from bpe_beam.settings.counts.filter import FilterCountsSettings
from bpe_beam.settings.counts.merge import MergeCountsSettings
from bpe_beam.storage import Storage


class NewCountsSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a job that makes a counts folder of others; the JSON has no UNSET."""

    job: str
    output: str
    was_finished_before: bool | None
    warnings: list[str] | UnsetType | None = UNSET
    merged: list[str] | UnsetType = UNSET
    documents: int
    text_bytes: int
    words: int
    unique_words: int
    sources: Mapping[str, Mapping[str, object]] | None
    rejects: int | UnsetType = UNSET
    left_out_unique_words: int | UnsetType = UNSET
    left_out_words: int | UnsetType = UNSET
    seconds: float = 0.0
    next: list[str]


def make_counts(
    storage: Storage,
    settings: MergeCountsSettings | FilterCountsSettings,
    job: Mapping[str, Any],
    partitions: int,
    progress: Progress,
    make_part: Callable[[int], CountsPart],
    manifest_of: Callable[[tuple[CountsPart, ...]], CountsManifest],
    rows: Callable[[CountsManifest], Rows],
) -> NewCountsSummary:
    """Write the parts of a counts folder that no earlier run finished, and return the summary."""
    started = time.monotonic()
    names = [part_name(i, partitions) for i in range(partitions)]
    folder = claim_folder(
        storage,
        settings.output,
        job,
        names,
        settings.run.overwrite,
        restore=_restore,
        warn=progress.warn,
    )
    resumed = folder.finished
    if not resumed:
        with progress.stage("write", partitions, "parts") as stage:
            parts = []
            for partition, task in enumerate(map(_task_of, names)):
                receipt = folder.receipt(task)
                if receipt is not None:
                    parts.append(receipt.read_stats(CountsPart))
                else:
                    parts.append(make_part(partition))
                    folder.write_receipt(task, [parts[-1].file], parts[-1])
                stage.advance(1)
        new = msgspec.structs.replace(
            manifest_of(tuple(parts)), files=(), job_fingerprint=folder.fingerprint
        )
        folder.finish(MANIFEST_FILE, new.to_bytes())
    manifest = read_manifest(storage, settings.output)
    return NewCountsSummary(
        job=job["job"],
        output=settings.output,
        was_finished_before=resumed or None,
        documents=manifest.documents,
        text_bytes=manifest.text_bytes,
        words=manifest.words,
        unique_words=manifest.unique_words,
        sources=source_figures(manifest.sources),
        **rows(manifest),
        seconds=round(time.monotonic() - started, 3),
        next=[command("counts", "show", settings.output)],
    )


def known_sources(manifest: CountsManifest, wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the wanted sources in the order of their names."""
    if manifest.sources is None:
        if wanted:
            raise UsageError(
                "must not be set for counts without sources",
                ("sources",),
                "leave it out, or count again by source",
            )
        return ()
    unknown = [name for name in wanted or () if name not in manifest.sources]
    if unknown:
        known = list_few(list(manifest.sources), 50)
        raise UsageError(
            f"must be sources of these counts ({known}), got {unknown[0]!r}", ("sources",)
        )
    return tuple(manifest.sources) if wanted is None else tuple(sorted(set(wanted)))


def _task_of(part: str) -> str:
    return part.removesuffix(".parquet")


def _restore(manifest: bytes) -> RestoredFolder:
    """Return a finished folder, which is repaired if a part is missing or damaged."""
    counts = CountsManifest.from_bytes(manifest, MANIFEST_FILE)
    parts = {_task_of(part.name): RestoredTask((part.file,), part) for part in counts.parts}
    return RestoredFolder(counts.job_fingerprint, parts)

"""What the jobs on counts folders share: the parts of a new folder, chosen sources, the summary."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from bpe_beam.counts.manifest import CountsManifest, CountsPart, part_name
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder, RestoredTask
from bpe_beam.jobs.source_summary import source_facts
from bpe_beam.messages import list_few
from bpe_beam.progress import Progress
from bpe_beam.settings.counts import FilterCountsSettings, MergeCountsSettings
from bpe_beam.storage import Storage


class NewCountsSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a job that makes a counts folder of others; UNSET is left out of the JSON."""

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
    seconds: float
    next: list[str]


def summary_of(
    settings: MergeCountsSettings | FilterCountsSettings,
    job: str,
    manifest: CountsManifest,
    resumed: bool,
    started: float,
) -> NewCountsSummary:
    """Return the summary of a job without the rows that only one of the jobs has.

    Args:
        settings: The job's settings.
        job: Its name.
        manifest: The new counts.
        resumed: Whether an earlier run finished them.
        started: When the job began, by the monotonic clock.
    """
    return NewCountsSummary(
        job=job,
        output=settings.output,
        was_finished_before=resumed or None,
        documents=manifest.documents,
        text_bytes=manifest.text_bytes,
        words=manifest.words,
        unique_words=manifest.unique_words,
        sources=source_facts(manifest),
        seconds=round(time.monotonic() - started, 3),
        next=[f"bpe-beam counts show {settings.output}"],
    )


def same_folder(one: str, other: str) -> bool:
    """Return whether two names mean one folder; URLs are compared as texts.

    Args:
        one: A path or URL.
        other: Another.
    """
    paths = [Path(name.removeprefix("file://")) for name in (one, other)]
    if all(path.exists() for path in paths):
        return paths[0].samefile(paths[1])
    return one.rstrip("/") == other.rstrip("/")


def refuse_own_folder(output: str, folders: tuple[str, ...]) -> None:
    """Refuse an output that is an input: overwriting would remove it before it is read.

    Args:
        output: The output folder.
        folders: The counts folders that the job reads.

    Raises:
        UsageError: The output is one of them.
    """
    for folder in folders:
        if same_folder(output, folder):
            raise UsageError(
                f"must be a folder other than those that are read, got {output}", ("output",)
            )


def make_counts(
    folder: OutputFolder,
    partitions: int,
    progress: Progress,
    make_part: Callable[[int], CountsPart],
    manifest_of: Callable[[tuple[CountsPart, ...]], CountsManifest],
) -> CountsManifest:
    """Return the manifest of a counts folder, after writing what it lacks.

    Args:
        folder: The claimed folder; its finished parts are kept.
        partitions: The number of parts.
        progress: Shows the progress.
        make_part: Writes the part of a number, from 0.
        manifest_of: Returns the manifest of all parts.
    """
    if not folder.finished:
        with progress.stage("write", partitions, "parts") as stage:
            parts = []
            for partition in range(partitions):
                parts.append(_part(folder, part_name(partition, partitions), partition, make_part))
                stage.advance(1)
        folder.finish(MANIFEST_FILE, manifest_of(tuple(parts)).to_json())
    url = folder.path(MANIFEST_FILE)
    return CountsManifest.from_bytes(folder.storage.read_bytes(url), url)


def claim(
    storage: Storage, output: str, job: Mapping[str, Any], partitions: int, overwrite: bool
) -> OutputFolder:
    """Claim a folder for counts of so many parts; see `OutputFolder.claim`.

    Args:
        storage: The storage client.
        output: The folder.
        job: The job's name and identity.
        partitions: The number of parts.
        overwrite: Whether to remove what an earlier job wrote there.
    """
    names = [part_name(i, partitions) for i in range(partitions)]
    return OutputFolder.claim(storage, output, job, names, overwrite, restore=_restore)


def known_sources(manifest: CountsManifest, wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the wanted sources in the order of their names.

    Args:
        manifest: The counts.
        wanted: The names of sources; None: all.

    Raises:
        UsageError: A source does not exist, or the counts have none.
    """
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
            f"must be sources of these counts ({known}), got {unknown[0]}", ("sources",)
        )
    return tuple(manifest.sources) if wanted is None else tuple(sorted(set(wanted)))


def _part(
    folder: OutputFolder, name: str, partition: int, make_part: Callable[[int], CountsPart]
) -> CountsPart:
    """Return a part, after writing it if it has no receipt."""
    task = name.removesuffix(".parquet")
    receipt = folder.receipt(task)
    if receipt is not None:
        return CountsPart(**cast(Any, receipt.stats))
    part = make_part(partition)
    folder.write_receipt(task, [FileInfo(name, part.bytes, part.sha256)], part.facts())
    return part


def _restore(manifest: bytes) -> Mapping[str, RestoredTask]:
    """Return the parts of a finished folder, from which it is repaired if one is missing."""
    return {
        part["name"].removesuffix(".parquet"): RestoredTask((FileInfo.from_json(part),), part)
        for part in json.loads(manifest)["parts"]
    }

"""Shared by the jobs on counts folders: making a new folder, chosen sources, the summary."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import pyarrow as pa
from msgspec import UNSET, UnsetType

from bpe_beam.counts.manifest import (
    CountsManifest,
    CountsPart,
    part_name,
    read_hashed_manifest,
    read_manifest,
)
from bpe_beam.counts.part_files import write_part
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.folder_checks import refuse_own_folder
from bpe_beam.folders.output_folder import RestoredFolder, RestoredTask
from bpe_beam.jobs.corpus.summary import Rows, source_figures
from bpe_beam.messages import command, list_few
from bpe_beam.progress import Progress
from bpe_beam.settings.counts.filter import FilterCountsSettings
from bpe_beam.settings.counts.merge import MergeCountsSettings
from bpe_beam.storage import Storage

S = TypeVar("S", bound=MergeCountsSettings | FilterCountsSettings)


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


class CountsMaker(ABC, Generic[S]):
    """A job that makes a counts folder of others, a part at a time."""

    job: Mapping[str, Any]  # its name, and what its result depends on, for `__job`

    def __init__(self, settings: S, folders: tuple[str, ...]) -> None:
        self.settings = settings
        self.storage = Storage(settings.run.storage_options)
        refuse_own_folder(settings.output, folders)
        manifests, hashes = zip(
            *(read_hashed_manifest(self.storage, folder) for folder in folders), strict=True
        )
        self.read: list[tuple[str, CountsManifest]] = list(zip(folders, manifests, strict=True))
        self.base: CountsManifest = manifests[0]
        self.hashes: list[str] = list(hashes)  # the SHA-256 of each manifest's file, in hex

    @abstractmethod
    def words(self, partition: int) -> Mapping[str | None, Iterable[pa.RecordBatch]]:
        """Return the words of a part of the new folder, by source."""

    @abstractmethod
    def manifest(self, parts: Sequence[CountsPart]) -> CountsManifest:
        """Return the manifest of the new folder; `run` adds the parts and their totals."""

    @abstractmethod
    def rows(self, manifest: CountsManifest) -> Rows:
        """Return the rows of the summary that only this job has."""

    def run(self, progress: Progress) -> NewCountsSummary:
        """Write the parts that no earlier run finished, and return the summary."""
        started = time.monotonic()
        storage, output = self.storage, self.settings.output
        names = [part_name(i, len(self.base.parts)) for i in range(len(self.base.parts))]
        folder = claim_folder(
            storage,
            output,
            self.job,
            names,
            self.settings.run.overwrite,
            restore=_restore,
            warn=progress.warn,
        )
        resumed = folder.finished
        if not resumed:
            parts: list[CountsPart] = []
            with progress.stage("write", len(names), "parts") as stage:
                for partition, name in enumerate(names):
                    receipt = folder.receipt(_task_of(name))
                    if receipt is not None:
                        parts.append(receipt.read_stats(CountsPart))
                    else:
                        words = self.words(partition)
                        part = write_part(storage, output, name, words, self.base.with_places)
                        folder.write_receipt(_task_of(name), [part.file], part)
                        parts.append(part)
                    stage.advance(1)
            new = msgspec.structs.replace(
                self.manifest(parts),
                unique_words=sum(part.unique_words for part in parts),
                word_bytes=sum(part.word_bytes for part in parts),
                parts=tuple(parts),
                files=(),
                job_fingerprint=folder.fingerprint,
            )
            folder.finish(MANIFEST_FILE, new.to_bytes())
        manifest = read_manifest(storage, output)
        return NewCountsSummary(
            job=self.job["job"],
            output=output,
            was_finished_before=resumed or None,
            documents=manifest.documents,
            text_bytes=manifest.text_bytes,
            words=manifest.words,
            unique_words=manifest.unique_words,
            sources=source_figures(manifest.sources),
            **self.rows(manifest),
            seconds=round(time.monotonic() - started, 3),
            next=[command("counts", "show", output)],
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

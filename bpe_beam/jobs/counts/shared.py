"""What the jobs that make a counts folder of others share: its claim and its parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from bpe_beam.counts.manifest import CountsManifest, CountsPart, part_name, read_hashed_manifest
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder, RestoredTask
from bpe_beam.messages import list_few
from bpe_beam.progress import Progress
from bpe_beam.storage import Storage


def same_folder(one: str, other: str) -> bool:
    """Whether two names mean one folder; a URL is known by its name alone."""
    paths = [Path(name.removeprefix("file://")) for name in (one, other)]
    if all(path.exists() for path in paths):
        return paths[0].samefile(paths[1])
    return one.rstrip("/") == other.rstrip("/")


def manifest_hash(storage: Storage, counts: str) -> str:
    """Return the SHA-256 of a counts folder's manifest in hex, which identifies the counts.

    Args:
        storage: The storage client.
        counts: The counts folder.

    Raises:
        UsageError: The folder is no counts folder, or it is not finished.
        DataError: The manifest is damaged.
    """
    return read_hashed_manifest(storage, counts)[1]


def claim(
    storage: Storage, output: str, job: Mapping[str, Any], partitions: int, overwrite: bool
) -> OutputFolder:
    """Take the folder for counts of so many parts; see `OutputFolder.claim`."""
    names = [part_name(i, partitions) for i in range(partitions)]
    return OutputFolder.claim(storage, output, job, names, overwrite, restore=_restore)


def refuse_own_folder(output: str, folders: tuple[str, ...]) -> None:
    """Refuse an output that is an input: `--overwrite` would remove it before it is read."""
    for folder in folders:
        if same_folder(output, folder):
            raise UsageError(f"output {output} is a folder that is read: give another")


def make_parts(
    folder: OutputFolder, partitions: int, progress: Progress, make: Callable[[int], CountsPart]
) -> tuple[CountsPart, ...]:
    """Return all parts, after writing those without a receipt one after another.

    Args:
        folder: Claimed.
        partitions: How many there are.
        progress: Where it is shown.
        make: Writes a part, by number.

    Returns:
        All parts.
    """
    parts = []
    with progress.stage("write", partitions, "parts") as stage:
        for partition in range(partitions):
            name = part_name(partition, partitions)
            task = name.removesuffix(".parquet")
            receipt = folder.receipt(task)
            if receipt is not None:
                parts.append(CountsPart(**cast(Any, receipt.stats)))
            else:
                part = make(partition)
                file = FileInfo(name, part.bytes, part.sha256)
                folder.write_receipt(task, [file], part.facts())
                parts.append(part)
            stage.advance(1)
    return tuple(parts)


def finished_manifest(folder: OutputFolder) -> CountsManifest:
    """The manifest of a folder that is finished."""
    url = folder.path(MANIFEST_FILE)
    return CountsManifest.from_bytes(folder.storage.read_bytes(url), url)


def totals_of(manifest: CountsManifest) -> dict[str, Any]:
    """What a summary says of counts."""
    return {
        "documents": manifest.documents,
        "text_bytes": manifest.text_bytes,
        "words": manifest.words,
        "unique_words": manifest.unique_words,
    }


def known_sources(manifest: CountsManifest, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The sources that are wanted, in the order of their names; all, if none is named.

    Raises:
        UsageError: A source that there is not, or no sources at all.
    """
    if manifest.sources is None:
        if wanted:
            raise UsageError(
                "source: these counts are not by source; count again with --source or "
                "--source-field"
            )
        return ()
    unknown = [name for name in wanted if name not in manifest.sources]
    if unknown:
        known = list_few(list(manifest.sources), 50)
        raise UsageError(f"source {unknown[0]!r} is none of these counts: they have {known}")
    return tuple(sorted(set(wanted))) or tuple(manifest.sources)


def _restore(manifest: bytes) -> Mapping[str, RestoredTask]:
    """Return the parts of a finished folder, from which it is repaired if one is missing."""
    return {
        part["name"].removesuffix(".parquet"): RestoredTask((FileInfo.from_json(part),), part)
        for part in json.loads(manifest)["parts"]
    }

"""The small files of a folder of shards: rejects, and those that follow from its manifest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bpe_beam.folders.artifact_names import REJECTS
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder, RestoredTask
from bpe_beam.storage.hashing import read_hashed

if TYPE_CHECKING:
    from bpe_beam.shards.manifest import Manifest


def restored_files(manifest: Manifest) -> dict[str, RestoredTask]:
    """Return the files of a finished folder that follow from all its shards."""
    file = manifest.token_counts
    return {} if file is None else {file.name: RestoredTask((file,), None)}


def copy_rejects(
    folder: OutputFolder, source: str, files: Sequence[FileInfo], part: str = ""
) -> None:
    """Copy the files of rejects of a folder of shards, each of some MB at most."""
    storage = folder.storage

    def copy(file: FileInfo) -> None:
        data = read_hashed(storage, storage.join(source, *file.name.split("/")), file.sha256)
        storage.write_bytes(folder.path(inside(part, file.name)), data)

    if files:
        storage.make_folder(folder.path(inside(part, REJECTS)))
    folder.request_each(copy, files)


def write_small_files(
    folder: OutputFolder, manifest: Manifest, tokenizer: bytes, part: str = ""
) -> None:
    """Write the files of a folder that follow from its manifest and its tokenizer."""
    from bpe_beam.shards.manifest import small_files  # not needed for counts

    for name, data in small_files(manifest, tokenizer).items():
        folder.write(inside(part, name), data)


def inside(part: str, name: str) -> str:
    """Return the name of a file of a part, relative to the output."""
    return f"{part}/{name}" if part else name

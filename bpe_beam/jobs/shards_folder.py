"""The files of a folder of shards that are neither shards nor rejects."""

from __future__ import annotations

from msgspec.structs import replace

from bpe_beam.folders.output_folder import OutputFolder, RestoredTask
from bpe_beam.shards.manifest import Manifest, small_files


def restored_files(manifest: Manifest, part: str = "") -> dict[str, RestoredTask]:
    """Return the files of a finished folder that are made of all its shards."""
    file = manifest.token_counts
    if file is None:
        return {}
    file = replace(file, name=inside(part, file.name))
    return {file.name: RestoredTask((file,), None)}


def write_small_files(
    folder: OutputFolder, manifest: Manifest, tokenizer: bytes, part: str = ""
) -> None:
    """Write the files of a folder that follow from its manifest and its tokenizer."""
    for name, data in small_files(manifest, tokenizer).items():
        folder.write(inside(part, name), data)


def inside(part: str, name: str) -> str:
    """Return the name of a file of a part, relative to the output."""
    return f"{part}/{name}" if part else name

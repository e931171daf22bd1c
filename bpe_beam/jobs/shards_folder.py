"""The files of a folder of shards that are neither shards nor rejects."""

from __future__ import annotations

from msgspec.structs import replace

from bpe_beam.folders.output_folder import OutputFolder, RestoredTask
from bpe_beam.shards.manifest import Manifest, small_files


def restored_files(manifest: Manifest, part: str = "") -> dict[str, RestoredTask]:
    """Return the files of a finished folder that are made of all its shards.

    Args:
        manifest: Its manifest.
        part: The name of the folder within the output; empty: the output itself.
    """
    file = manifest.token_counts
    if file is None:
        return {}
    file = replace(file, name=inside(part, file.name))
    return {file.name: RestoredTask((file,), None)}


def write_small_files(
    folder: OutputFolder, manifest: Manifest, tokenizer: bytes, part: str = ""
) -> None:
    """Write the files of a folder that follow from its manifest and its tokenizer.

    Args:
        folder: The output.
        manifest: The manifest.
        tokenizer: The tokenizer, as `tokenizer.json`.
        part: See `restored_files`.
    """
    for name, data in small_files(manifest, tokenizer).items():
        folder.write(inside(part, name), data)


def inside(part: str, name: str) -> str:
    """Return the name of a file of a part, relative to the output.

    Args:
        part: The name of the part's folder; empty if the output has no parts.
        name: The name of the file in it.
    """
    return f"{part}/{name}" if part else name

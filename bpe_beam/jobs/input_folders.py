"""Folders that a job reads to make a new one: none twice, and none the output."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from bpe_beam.errors import UsageError
from bpe_beam.storage.names import is_local, local_path


def same_folder(one: str, other: str) -> bool:
    """Return whether two names mean one folder; URLs are compared as texts.

    Args:
        one: A path or URL.
        other: A path or URL.
    """
    paths = [Path(name.removeprefix("file://")) for name in (one, other)]
    if all(path.exists() for path in paths):
        return paths[0].samefile(paths[1])
    return one.rstrip("/") == other.rstrip("/")


def refuse_own_folder(output: str, folders: tuple[str, ...], *, inside: bool = False) -> None:
    """Refuse an output that is or has an input: overwriting would remove it before it is read.

    Args:
        output: The output folder.
        folders: The folders that the job reads.
        inside: Whether an input may be within the output.

    Raises:
        UsageError: The output is one of them, or has one of them.
    """
    for folder in folders:
        if same_folder(output, folder):
            raise UsageError(
                f"must be a folder other than those that are read, got {output}", ("output",)
            )
        if not inside and _is_within(folder, output):
            raise UsageError(
                f"must not have a folder that is read, got {output}, which has {folder}",
                ("output",),
            )


def _is_within(folder: str, outer: str) -> bool:
    """Return whether a folder is below another one; URLs are compared as texts."""
    if is_local(folder) and is_local(outer):
        return local_path(outer).resolve() in local_path(folder).resolve().parents
    return folder.startswith(outer.rstrip("/") + "/")


def refuse_twice(folders: Sequence[str], harm: str) -> None:
    """Refuse a folder that is named twice.

    Args:
        folders: The folders that the job reads.
        harm: What would happen, such as "its words would be counted twice".

    Raises:
        UsageError: Names the folder.
    """
    for one, other in itertools.combinations(folders, 2):
        if same_folder(one, other):
            raise UsageError(f"{other} is named twice: {harm}")

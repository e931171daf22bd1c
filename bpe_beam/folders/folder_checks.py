"""Checks of the folders that a job reads and writes, and their short names."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Mapping, Sequence

from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import TOKENIZER_FILE
from bpe_beam.storage import redact
from bpe_beam.storage.names import absolute, is_local, local_path, real_path


def same_folder(one: str, other: str) -> bool:
    """Return whether two names mean one folder; URLs are compared as texts."""
    paths = [local_path(name) for name in (one, other) if is_local(name)]
    # A folder without permission to look for it counts as absent; writing to it is refused later.
    if len(paths) == 2 and all(map(os.path.exists, paths)):
        return paths[0].samefile(paths[1])
    return one.rstrip("/") == other.rstrip("/")


def refuse_own_folder(output: str, folders: tuple[str, ...], *, inside: bool = False) -> None:
    """Refuse an output that is or contains an input, which overwriting would remove."""
    for folder in folders:
        if is_local(folder) and is_local(output):
            within = real_path(output) in real_path(folder).parents
        else:
            within = folder.startswith(output.rstrip("/") + "/")
        if same_folder(output, folder):
            raise UsageError(
                f"must be a folder other than those that are read, got {output}", ("output",)
            )
        if within and not inside:
            raise UsageError(
                f"must not have a folder that is read, got {output}, which has {folder}",
                ("output",),
            )


def refuse_twice(folders: Sequence[str], harm: str) -> None:
    for one, other in itertools.combinations(folders, 2):
        if same_folder(one, other):
            raise UsageError(f"{other} is named twice: {harm}")


def refuse_equal(folders: Sequence[str], harm: str) -> None:
    """Refuse a name that appears twice: `refuse_twice` takes long for thousands of windows."""
    for name, count in Counter(map(absolute, folders)).items():
        if count > 1:
            raise UsageError(f"{redact(name)} is named twice: {harm}")


def refuse_unlike(
    folders: Sequence[str], kinds: Sequence[Mapping[str, object]], problem: str, remedy: str = ""
) -> None:
    """Refuse folders that differ in properties that they must share."""
    for folder, kind in zip(folders[1:], kinds[1:], strict=True):
        lines = [
            f"  {name}: {_shown(value)} in {redact(folders[0])}, "
            f"{_shown(kind[name])} in {redact(folder)}"
            for name, value in kinds[0].items()
            if value != kind[name]
        ]
        if lines:
            raise UsageError("\n".join([f"{problem}; what differs:", *lines]), remedy=remedy)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return "none" if value is None else str(value)


def short_names(paths: Sequence[str]) -> list[str]:
    """Return a name for each tokenizer: its folder; the whole paths where those are equal."""
    whole = [redact(path) for path in paths]
    short = []
    for path in whole:
        parts = [part for part in path.split("/") if part]
        if len(parts) > 1 and parts[-1] == TOKENIZER_FILE:
            parts.pop()
        short.append(parts[-1] if parts else path)
    return short if len(set(short)) == len(short) else whole

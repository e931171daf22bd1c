"""Giving a file another name: one step on disk, a copy within the store elsewhere."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bpe_beam.storage.failures import retried

_COPY_PAUSES = tuple(min(0.1 * 2**i, 10.0) for i in range(40))
"""Seconds between looks at a copy that is not complete; some five minutes."""


def move_local(source: Path, target: Path) -> None:
    """Renames a file; does nothing where that was done before."""
    try:
        source.replace(target)
    except FileNotFoundError:
        if not target.is_file():
            raise


def move_remote(
    fs: Any, source: str, target: str, size_of: Callable[[str], int], *, copies: bool
) -> None:
    """Rename a file of a store; do nothing where that was done before. Each step is tried again.

    Args:
        fs: The file system.
        source: The file's path there.
        target: Its new one.
        size_of: The size of a path there; raises FileNotFoundError.
        copies: The store has no renaming, only copies.
    """
    if not copies:
        retried(lambda: _rename_once(fs, source, target, size_of))
        return
    try:
        size = retried(lambda: size_of(source))
    except FileNotFoundError:
        retried(lambda: size_of(target))
        return
    try:
        retried(lambda: fs.cp_file(source, target))
        # A copy may go on in the store after it was asked for.
        for pause in _COPY_PAUSES:
            if retried(lambda: size_of(target)) == size:
                break
            time.sleep(pause)
        else:
            raise OSError(f"the copy has {size_of(target):,} of {size:,} bytes")
        retried(lambda: fs.rm_file(source))
    except FileNotFoundError:
        # Somebody else moves it, too.
        if retried(lambda: size_of(target)) != size:
            raise


def _rename_once(fs: Any, source: str, target: str, size_of: Callable[[str], int]) -> None:
    try:
        size_of(source)
    except FileNotFoundError:
        size_of(target)
    else:
        rename(fs, source, target)


def rename(fs: Any, source: str, target: str) -> None:
    """fsspec's own renaming, which takes some characters of a name for a glob."""
    if re.search(r"[*?\[]", source):
        fs.cp_file(source, target)
        fs.rm_file(source)
    else:
        fs.mv(source, target)

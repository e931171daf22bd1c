"""Giving a file of a remote store another name: a rename, or a copy within the store."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from bpe_beam.storage.retry import retried

_COPY_PAUSES = tuple(min(0.1 * 2**i, 10.0) for i in range(40))
"""Seconds between looks at a copy that is not complete; about five minutes in total."""


def move(fs: Any, source: str, target: str, size_of: Callable[[str], int], *, copies: bool) -> None:
    """Give a file another name; do nothing if an earlier call has done so.

    Each step is repeated after errors that may pass.

    Args:
        fs: The file system.
        source: The file's path in that file system.
        target: Its new path.
        size_of: Returns the size of a path in bytes; raises FileNotFoundError.
        copies: Whether the store can only copy and remove.

    Raises:
        FileNotFoundError: Neither file exists.
        OSError: The copy has another size, or the store fails.
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
        # A store may complete a copy after it has answered.
        for pause in _COPY_PAUSES:
            if retried(lambda: size_of(target)) == size:
                break
            time.sleep(pause)
        else:
            raise OSError(f"the copy has {size_of(target):,} of {size:,} bytes")
        retried(lambda: fs.rm_file(source))
    except FileNotFoundError:
        # Another process moves the same file.
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
    """Rename a file as fsspec does, but with `*`, `?` and `[` as plain characters of its name.

    Args:
        fs: The file system.
        source: The file's path in that file system.
        target: Its new path.
    """
    if re.search(r"[*?\[]", source):
        fs.cp_file(source, target)
        fs.rm_file(source)
    else:
        fs.mv(source, target)

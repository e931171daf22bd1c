"""Local files: what a path or a glob means, and what it takes for them to survive a power cut.

A file that was written and renamed may be empty after a power cut: the disk may have learned its
name and not its bytes. So its bytes are forced to disk first (`sync_file`), then it is renamed,
and whatever relies on its name waits for the folder as well (`sync_folder`).
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bpe_beam.storage.file_info import Found
from bpe_beam.storage.names import absolute_glob, local_path


def stat_local(path: Path, opened: int | None = None) -> Found:
    """The facts of a local file; of the one that is open, if its number is given."""
    return _found(str(path), path.stat() if opened is None else os.fstat(opened))


def expand_local(pattern: str) -> list[Found]:
    """The files that a local path, `file://` URL or glob means."""
    path = local_path(pattern)
    if path.is_file():
        return [stat_local(path)]
    parts = absolute_glob(pattern).split("/")
    magic = next((i for i, part in enumerate(parts) if re.search(r"[*?\[]", part)), None)
    if magic is None:
        return []
    dotted = any(part.startswith(".") for part in parts[magic:])
    return list(_walk("/".join(parts[:magic]) + "/", parts[magic:], dotted))


_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS}
"""What file systems and devices answer that have nothing to sync, or no way to."""


def sync_file(opened: int) -> None:
    """Force the bytes of an open file to disk, where the file system can.

    Raises:
        OSError: The disk is full or fails.
    """
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def sync_folder(path: Path) -> None:
    """Force the names in a folder to disk; nothing happens if it is gone, or may not be read."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):
        return
    try:
        sync_file(opened)
    finally:
        os.close(opened)


def make_local_folder(path: Path) -> None:
    """Make a folder and those above it, each of which survives a power cut."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def _walk(folder: str, parts: Sequence[str], dotted: bool) -> Iterator[Found]:
    """The files below `folder` (with its slash) whose path matches the parts of a glob. `**`
    does not follow links to folders, which may lead round in a circle; a named part does."""
    part, rest = parts[0], parts[1:]
    if part == "**" and rest:
        yield from _walk(folder, rest, dotted)
    try:
        with os.scandir(folder) as listing:
            entries = list(listing)
    except (FileNotFoundError, NotADirectoryError):
        return
    matches = re.compile("" if part == "**" else fnmatch.translate(part)).match
    for entry in entries:
        if (entry.name.startswith(".") and not dotted) or not matches(entry.name):
            continue
        below = f"{folder}{entry.name}/"
        if part == "**":
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(below, parts, dotted)
            elif not rest and entry.is_file():
                yield _found(entry.path, entry.stat())
        elif not rest:
            if entry.is_file():
                yield _found(entry.path, entry.stat())
        elif entry.is_dir():
            yield from _walk(below, rest, dotted)


def _found(path: str, known: os.stat_result) -> Found:
    # No inode: workers may read copies of the corpus on machines of their own.
    return Found(path, known.st_size, f"{known.st_mtime_ns}-{known.st_size}")

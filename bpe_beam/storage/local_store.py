"""Local files, and their globs."""

from __future__ import annotations

import errno
import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from bpe_beam.errors import UsageError
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.names import absolute_glob, attempt_name, local_path
from bpe_beam.storage.stored_file import StoredFile
from bpe_beam.storage.writing import is_outlet, sync_folder, write_attempt


class LocalStore:
    """The files of this machine, by path or `file://` URL.

    Its methods are those of `Storage` with the same names, and documented there. All but `create`
    leave it to `Storage` that errors name the file.
    """

    secrets: frozenset[str] = frozenset()

    def expand(self, pattern: str) -> list[StoredFile]:
        path = local_path(pattern)
        if path.is_file():
            return [_stored_file(str(path), path.stat())]
        parts = absolute_glob(pattern).split("/")
        magic = next((i for i, part in enumerate(parts) if re.search(r"[*?\[]", part)), None)
        if magic is None:
            return []
        dotted = any(part.startswith(".") for part in parts[magic:])
        return list(_walk("/".join(parts[:magic]) + "/", parts[magic:], dotted))

    def stat(self, url: str) -> StoredFile:
        path = local_path(url)
        return _stored_file(str(path), path.stat())

    def exists(self, url: str) -> bool:
        return local_path(url).exists()

    def is_folder(self, url: str) -> bool:
        return local_path(url).is_dir()

    def list_names(self, folder: str) -> list[str]:
        path = local_path(folder)
        try:
            return sorted(inside.name for inside in path.iterdir())
        except FileNotFoundError:
            return []
        except NotADirectoryError:
            if path.exists():
                raise UsageError(f"{folder} is a file; give a folder") from None
            raise

    def open_with_stat(self, url: str) -> tuple[StoredFile, BinaryIO]:
        with named_errors("read", url):
            path = local_path(url)
            stream = path.open("rb")
            return _stored_file(str(path), os.fstat(stream.fileno())), stream

    def read_head(self, url: str, count: int) -> bytes:
        """See `Storage`."""
        with local_path(url).open("rb", buffering=0) as stream:
            return stream.read(count)

    def create(self, url: str, *, synced: bool = True) -> AbstractContextManager[BinaryIO]:
        """See `Storage`.

        Args:
            url: The file.
            synced: Whether its bytes are forced to disk before its name appears.
        """
        path = local_path(url)
        attempt = Path(attempt_name(str(path)))
        with named_errors("write", url):
            if is_outlet(path):
                outlet = cast(BinaryIO, path.open("ab", buffering=0))
                return write_attempt(outlet, url, publish=lambda: None, remove=lambda: None)
            raw = open_new(attempt)
        publish = partial(attempt.replace, path)
        return write_attempt(raw, url, publish=publish, remove=attempt.unlink, synced=synced)

    def move(self, source: str, target: str) -> None:
        """See `Storage`."""
        try:
            local_path(source).replace(local_path(target))
        except FileNotFoundError:
            if not local_path(target).is_file():
                raise

    def remove(self, url: str) -> None:
        local_path(url).unlink(missing_ok=True)

    def make_folder(self, url: str, *, synced: bool) -> None:
        """See `Storage`."""
        path = local_path(url)
        missing = [each for each in (path, *path.parents) if synced and not each.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for each in missing:
            sync_folder(each.parent)

    def remove_folder_if_empty(self, url: str) -> None:
        try:
            local_path(url).rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                raise


def open_new(path: Path) -> BinaryIO:
    """Open a file that must not exist yet for writing, without a buffer."""
    return cast(BinaryIO, path.open("xb", buffering=0))


def _walk(folder: str, parts: Sequence[str], dotted: bool) -> Iterator[StoredFile]:
    """Yield the files below `folder` (with its slash) whose path matches the parts of a glob.

    `**` does not follow links to folders, which may form a circle; a named part does.
    """
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
        if part == "**" and entry.is_dir(follow_symlinks=False):
            yield from _walk(below, parts, dotted)
        elif not rest:
            if entry.is_file():
                yield _stored_file(entry.path, entry.stat())
        elif part != "**" and entry.is_dir():
            yield from _walk(below, rest, dotted)


def _stored_file(path: str, known: os.stat_result) -> StoredFile:
    # No inode: workers may read copies of the corpus on machines of their own.
    return StoredFile(path, known.st_size, f"{known.st_mtime_ns}-{known.st_size}")

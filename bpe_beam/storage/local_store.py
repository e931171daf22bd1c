"""Local files, and their globs."""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from bpe_beam.errors import UsageError
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.globs import MAGIC, Part, parts_of
from bpe_beam.storage.names import absolute_glob, attempt_name, escape_existing, local_path
from bpe_beam.storage.stored_file import LinkReport, StoredFile
from bpe_beam.storage.writing import is_outlet, sync_folder, write_attempt


class LocalStore:
    """The files of this machine, by path or `file://` URL.

    It has methods of `Storage`, which documents them. All but `create` leave it to `Storage` that
    errors name the file.
    """

    secrets: frozenset[str] = frozenset()

    def expand(self, pattern: str, on_link: LinkReport) -> list[StoredFile]:
        path = local_path(pattern)
        if path.is_file():
            return [_stored_file(str(path), path.stat())]
        escaped = escape_existing(pattern, lambda name: os.path.lexists(local_path(name)))
        parts = absolute_glob(escaped).split("/")
        magic = next((i for i, part in enumerate(parts) if MAGIC.search(part)), None)
        if path.exists() or magic is None:
            if not path.exists() and path.is_symlink():
                on_link(str(path), _broken(str(path)))
            return []
        walk = _Walk(on_link)
        return list(walk.files("/".join(parts[:magic]) + "/", parts_of(parts[magic:])))

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

    def read_head(self, url: str, count: int, _size: int | None = None) -> bytes:
        with local_path(url).open("rb", buffering=0) as stream:
            return stream.read(count)

    def create(self, url: str, *, synced: bool = True) -> AbstractContextManager[BinaryIO]:
        path = local_path(url)
        attempt = Path(attempt_name(str(path)))
        with named_errors("write", url):
            if is_outlet(path):
                outlet = cast(BinaryIO, path.open("ab", buffering=0))
                return write_attempt(outlet, url, publish=lambda: None, remove=lambda: None)
            raw = open_new(attempt)
        publish = partial(attempt.replace, path)
        return write_attempt(raw, url, publish=publish, remove=attempt.unlink, synced=synced)

    def check_writable(self, url: str) -> None:
        """See `Storage`. A device or a pipe is not opened: its reader would see that."""
        path = local_path(url)
        if not is_outlet(path):
            attempt = Path(attempt_name(str(path)))
            attempt.touch(exist_ok=False)
            attempt.unlink()

    def move(self, source: str, target: str) -> None:
        try:
            local_path(source).replace(local_path(target))
        except FileNotFoundError:
            if not local_path(target).is_file():
                raise

    def remove(self, url: str) -> None:
        local_path(url).unlink(missing_ok=True)

    def make_folder(self, url: str, *, synced: bool) -> None:
        path = local_path(url)
        missing = [each for each in (path, *path.parents) if synced and not each.exists()]
        try:
            path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            for each in (path, *path.parents):
                if each.is_symlink() and not each.exists():
                    raise UsageError(f"{each} is {_broken(str(each))}; give a folder") from None
            raise
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


class _Walk:
    """The files below a folder whose path matches the parts of a glob.

    Links to files and folders are followed. A folder that a link leads to is read once, and no
    folder is read that contains the first one, so circles end.
    """

    def __init__(self, on_link: LinkReport) -> None:
        self._on_link = on_link
        self._linked: deque[tuple[str, tuple[Part, ...]]] = deque()
        self._visited: set[tuple[str, int]] = set()

    def files(self, folder: str, parts: tuple[Part, ...]) -> Iterator[StoredFile]:
        """Yield the files below `folder`, which has a slash at its end."""
        first = os.path.realpath(folder)
        yield from self._below(folder, first, parts)
        # Links come last, so that a folder which the walk reaches without them has its own name.
        while self._linked:
            path, parts = self._linked.popleft()
            target = os.path.realpath(path)
            if all(part.text != "**" for part in parts):  # the folders that it names are few
                yield from self._below(f"{path}/", target, parts)
            elif f"{first}/".startswith(f"{target.rstrip('/')}/"):
                self._on_link(path, f"a link to {target}, which contains it")
            elif (target, len(parts)) in self._visited:
                self._on_link(path, f"a link to {target}, which is read already")
            else:
                yield from self._below(f"{path}/", target, parts)

    def _below(self, folder: str, real: str, parts: tuple[Part, ...]) -> Iterator[StoredFile]:
        """Yield the files below a folder; `real` is its path without links."""
        part, rest = parts[0], parts[1:]
        deep = part.text == "**"
        if deep:
            self._visited.add((real, len(parts)))
            if rest:
                yield from self._below(folder, real, rest)
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            if not part.matches(entry.name):
                continue
            if rest and entry.is_file(follow_symlinks=False):
                continue
            try:
                status = entry.stat()
            except OSError as error:
                if entry.is_symlink():
                    self._on_link(entry.path, _broken(entry.path))
                elif not isinstance(error, FileNotFoundError):  # it was not removed meanwhile
                    raise
                continue
            if stat.S_ISREG(status.st_mode):
                if not rest:
                    yield _stored_file(entry.path, status)
            elif stat.S_ISDIR(status.st_mode) and (deep or rest):
                below = parts if deep else rest
                if entry.is_symlink():
                    self._linked.append((entry.path, below))
                else:
                    name = f"{real.rstrip('/')}/{entry.name}"
                    yield from self._below(f"{folder}{entry.name}/", name, below)


def _broken(path: str) -> str:
    """Return why a link leads to nothing."""
    try:
        Path(path).stat()
    except OSError as error:
        return f"a link to {Path(path).readlink()}: {error.strerror}"
    return "a link that has changed"


def _stored_file(path: str, known: os.stat_result) -> StoredFile:
    # No inode: each worker may read its own copy of the corpus.
    return StoredFile(path, known.st_size, f"{known.st_mtime_ns}-{known.st_size}")

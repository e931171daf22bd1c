"""A lock on a local output folder, so that one run at a time works there.

The operating system keeps the lock for an open folder and drops it when the process ends, however
it ends: a killed run leaves nothing that blocks the next one. Object stores have no locks.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage
from bpe_beam.storage.names import is_local, real_path

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


class FolderLock:
    """The lock of a folder, until `unlock` or until nothing refers to it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.thread = threading.current_thread()

    def unlock(self) -> None:
        """Let another run have the folder."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    __del__ = unlock


_locks: WeakValueDictionary[str, FolderLock] = WeakValueDictionary()
"""The locks of this process by the folder's path."""


def lock_folder(storage: Storage, url: str) -> FolderLock | None:
    """Return the lock of a folder, which is made if it does not exist; refuse another run's.

    A thread runs one job at a time. So a lock that this thread has, or one that has ended, is of a
    job that failed, and is given up.
    """
    if fcntl is None or not is_local(url):
        return None
    path = str(real_path(url))
    before = _locks.get(path)
    mine = threading.current_thread()
    if before is not None and (before.thread is mine or not before.thread.is_alive()):
        before.unlock()
    while True:
        storage.make_folder(url)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # the other run has removed its folder
            continue
        except PermissionError:  # a folder in which files can be made, but not listed
            return None
        lock = FolderLock(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                remedy = "when it has ended, run this one again, or give another {output}"
                raise DataError(f"another run works in {url}", remedy=remedy) from None
            return None  # a network's file system without locks of folders
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), Path(path).stat()):
                _locks[path] = lock
                return lock

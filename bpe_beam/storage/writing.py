"""New files: complete under their name, or absent.

The bytes of a local file are forced to disk before it is renamed: after a power cut, the disk might
have the new name and not the bytes. A job that relies on the name also forces the folder to disk
(`sync_folder`). A task of the local engine gives its core back while it waits for the disk.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from bpe_beam.storage.error_messages import named_errors

WRITE_BUFFER = 1 << 20
"""Bytes that are gathered before they are written."""

_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS}
"""The errors of file systems and devices that have nothing to sync, or no way to do so."""


def is_outlet(path: Path) -> bool:
    """Return whether a path is no file that can be replaced.

    Outlets are devices, pipes, sockets and the open files of this process (/dev/stdout, /dev/fd/3):
    new bytes come after the bytes that they got before.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISREG(mode):
        folder = str(path.absolute().parent)
        return folder in ("/dev", "/dev/fd") or folder.startswith("/proc/")
    return not stat.S_ISDIR(mode)


@contextlib.contextmanager
def write_attempt(
    raw: BinaryIO,
    url: str,
    *,
    publish: Callable[[], object],
    remove: Callable[[], object],
    secrets: Collection[str] = (),
    synced: bool = False,
) -> Iterator[BinaryIO]:
    """Yield a buffered stream for an attempt at a file, which gets its name when the block ends."""
    destination = _Destination(raw, url, secrets, synced)
    buffered = io.BufferedWriter(destination, WRITE_BUFFER)
    try:
        yield cast(BinaryIO, buffered)
        buffered.close()
        with named_errors("write", url, secrets):
            publish()
    except BaseException:
        destination.discarded = True
        with contextlib.suppress(Exception):
            buffered.close()
        with contextlib.suppress(Exception):
            remove()
        raise


class _Destination(io.RawIOBase):
    """The raw end of a stream, whose errors name the file; once `discarded`, it writes no more."""

    def __init__(self, stream: BinaryIO, url: str, secrets: Collection[str], synced: bool) -> None:
        super().__init__()
        self.discarded = False
        self._stream, self._url, self._secrets, self._synced = stream, url, secrets, synced

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self.discarded:
            return memoryview(data).nbytes
        with named_errors("write", self._url, self._secrets):
            return self._stream.write(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with named_errors("write", self._url, self._secrets):
                try:
                    if self._synced and not self.discarded:
                        sync_file(self._stream.fileno())
                finally:
                    self._stream.close()


def sync_file(descriptor: int) -> None:
    """Force the bytes of an open file to disk, where the file system can."""
    try:
        with core_free():
            os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def sync_folder(path: Path) -> None:
    """Force the names in a folder to disk; do nothing if it is missing or may not be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):
        return
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


_of_thread = threading.local()


@contextlib.contextmanager
def core_taken(cores: threading.Semaphore) -> Iterator[None]:
    """Wait for a core, and have it for the time of a block."""
    with cores:
        _of_thread.cores = cores
        try:
            yield
        finally:
            _of_thread.cores = None


@contextlib.contextmanager
def core_free() -> Iterator[None]:
    """Give this thread's core back for the time of a block, if it has one."""
    cores: threading.Semaphore | None = getattr(_of_thread, "cores", None)
    if cores is None:
        yield
        return
    cores.release()
    try:
        yield
    finally:
        cores.acquire()

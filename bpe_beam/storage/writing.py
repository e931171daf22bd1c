"""New files and uploads: complete under their name, or absent.

The bytes of a local file are forced to disk before it is renamed: after a power cut, the disk might
have the new name and not the bytes. A job that relies on the name also forces the folder to disk
(`sync_folder`). A task of the local engine gives its core back while it waits for the disk.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import stat
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from bpe_beam.errors import DataError
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.names import AZURE, protocol_of
from bpe_beam.storage.retry import UPLOAD_PATIENCE_SECONDS, retried

WRITE_BUFFER = 1 << 20
"""Bytes that are gathered before they are written."""

_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS}
"""The errors of file systems and devices that have nothing to sync, or no way to do so."""

# A store takes an upload in parts: S3 at most 10,000, of equal size on some servers. So 62.5 GiB
# are uploaded in parts that cost little memory, and 1.4 TiB more in large ones.
PART = 16 << 20
_MANY_PARTS = 4000
LARGE_PART = 256 << 20


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


class Upload:
    """The upload of an object, which exists once `finish` returns, and not before."""

    def __init__(self, fs: Any, path: str, url: str, secrets: Collection[str]) -> None:
        self._fs, self._path, self._url, self._secrets = fs, path, url, secrets
        self._hash = hashlib.sha256()
        self._file = fs.open(path, "wb", block_size=PART)
        if protocol_of(url) in AZURE:
            _repeat_blocks(self._file)
        self._size = 0

    def write(self, data: Any) -> int:
        """Take bytes, and send each part that is full."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            if self._size == PART * _MANY_PARTS:
                self._file.blocksize = LARGE_PART
            taken = rest[: self._file.blocksize - self._file.buffer.tell()]
            self._file.write(taken)
            self._hash.update(taken)
            self._size += len(taken)
            rest = rest[len(taken) :]
        return size

    def close(self) -> None:
        """Do nothing: `finish` or `discard` follows."""

    def finish(self) -> None:
        """Send the last part, and make the object appear.

        A client repeats a request whose answer was lost. If the store carried out the first one,
        some stores answer the second with "no such upload"; then the object itself is compared.
        """
        try:
            self._file.close()
        except FileNotFoundError:
            if not self._is_complete():
                raise
            self._file.closed = True  # an unclosed file of fsspec would try again

    def _is_complete(self) -> bool:
        """Return whether the store has an object of this name with the bytes that were sent."""
        from bpe_beam.storage.remote_file import BLOCK, open_ranges, open_reader  # remote only

        stored = hashlib.sha256()
        try:
            opened = open_reader(
                lambda: open_ranges(self._fs, self._path, self._url), self._url, self._secrets
            )
            with opened[1] as stream:
                while data := stream.read(BLOCK):
                    stored.update(data)
        except DataError:
            return False
        return stored.digest() == self._hash.digest()

    def discard(self) -> None:
        file = self._file
        with contextlib.suppress(Exception):
            file.discard()
        # an unclosed file of fsspec would finish itself when it is garbage
        file.closed = True
        spool = getattr(file, "temp_file", None)  # Hugging Face's
        if spool is not None:
            with contextlib.suppress(Exception):
                spool.close()
                Path(spool.name).unlink()


def _repeat_blocks(file: Any) -> None:
    """Make an upload to Azure repeat a part as long after errors as other stores' clients do.

    Each attempt sends blocks of new names, and the last request lists the blocks of the object:
    blocks of a failed attempt are taken from the list.
    """
    upload_once = file._upload_chunk

    def upload(final: bool = False) -> object:
        blocks = list(file._block_list)

        def attempt() -> object:
            file._block_list[:] = blocks
            return upload_once(final=final)

        return retried(attempt, UPLOAD_PATIENCE_SECONDS)

    file._upload_chunk = upload


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

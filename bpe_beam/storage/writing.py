"""New files: written whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import io
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from bpe_beam.errors import DataError, NotFoundError
from bpe_beam.storage.failures import named_errors, retried
from bpe_beam.storage.local import sync_file
from bpe_beam.storage.ranges import open_ranges
from bpe_beam.storage.reading import BLOCK, open_reader

# A store takes an upload in parts: S3 10,000 at most, equal ones on some servers. So 62.5 GiB go
# up in parts that cost little memory, and 1.4 TiB more in large ones.
PART = 16 << 20
_MANY_PARTS = 4000
LARGE_PART = 256 << 20

WRITE_BUFFER = 1 << 20
"""Bytes that are gathered before they are handed on."""


def is_outlet(path: Path) -> bool:
    """Whether a path is none of a file that can be replaced, but of a device, a pipe, a socket, or
    of what this process has open (/dev/stdout, /dev/fd/3)."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISREG(mode):
        folder = str(path.absolute().parent)
        return folder in ("/dev", "/dev/fd") or folder.startswith("/proc/")
    return not stat.S_ISDIR(mode)


@contextlib.contextmanager
def write_straight(path: Path, url: str) -> Iterator[BinaryIO]:
    """Opens an outlet; what is written goes there at once, behind what was written before."""
    with named_errors("write", url):
        file = cast(BinaryIO, path.open("ab", buffering=0))
    with io.BufferedWriter(Destination(file, url)) as stream:
        yield cast(BinaryIO, stream)


class Destination(io.RawIOBase):
    """Where a stream's bytes go, so that a failing write names the file.

    Attributes:
        synced: Whether the bytes are forced to disk when the stream is closed; only for files that
            have a number.
    """

    def __init__(
        self, stream: BinaryIO, url: str, secrets: Collection[str] = (), *, synced: bool = False
    ) -> None:
        super().__init__()
        self.synced = synced
        self._stream, self._url, self._secrets = stream, url, secrets

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any, /) -> int:
        """Hands the bytes on."""
        with named_errors("write", self._url, self._secrets):
            return self._stream.write(data)

    def close(self) -> None:
        """Closes what the bytes go to."""
        if not self.closed:
            super().close()
            with named_errors("write", self._url, self._secrets):
                try:
                    if self.synced:
                        sync_file(self._stream.fileno())
                finally:
                    self._stream.close()


class Upload(io.RawIOBase):
    """An object on its way up: there when `finish` returns, and not before."""

    def __init__(self, fs: Any, path: str, url: str, secrets: Collection[str]) -> None:
        super().__init__()
        self._fs, self._path, self._url, self._secrets = fs, path, url, secrets
        self._given_up = False
        self._hash = hashlib.sha256()
        with named_errors("write", url, secrets):
            self._file = fs.open(path, "wb", block_size=PART)
        self._size = 0

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any, /) -> int:
        """Takes the bytes, and sends a part when there is one."""
        view = memoryview(data).cast("B")
        if self._given_up:
            return len(view)
        with named_errors("write", self._url, self._secrets):
            rest = view
            while rest:
                if self._size == PART * _MANY_PARTS:
                    self._file.blocksize = LARGE_PART
                room = self._file.blocksize - self._file.buffer.tell()
                self._file.write(rest[:room])
                self._hash.update(rest[:room])
                self._size += len(rest[:room])
                rest = rest[room:]
        return len(view)

    def finish(self) -> None:
        """Sends what is left, and lets the object appear.

        A client asks again where an answer was lost. If the store carried out the first request,
        some answer the second one that there is no such upload: then the object itself tells.
        """
        with named_errors("write", self._url, self._secrets):
            try:
                self._file.close()
            except FileNotFoundError:
                if not self._is_there():
                    raise
                self._file.closed = True  # an unclosed file of fsspec would try again

    def _is_there(self) -> bool:
        """Whether the store has an object of this name with the bytes that were sent."""
        there = hashlib.sha256()
        try:
            opened = open_reader(
                lambda: open_ranges(self._fs, self._path, self._url), self._url, self._secrets
            )
            with opened[1] as stream:
                while data := stream.read(BLOCK):
                    there.update(data)
        except DataError:
            return False
        return there.digest() == self._hash.digest()

    def give_up(self) -> None:
        """Takes back what was sent. Never raises: another error is on its way."""
        self._given_up = True
        file = self._file
        with contextlib.suppress(Exception):
            file.discard()
        # an unclosed file of fsspec would finish itself when it is forgotten
        file.closed = True
        spool = getattr(file, "temp_file", None)  # Hugging Face's
        if spool is not None:
            with contextlib.suppress(Exception):
                spool.close()
                Path(spool.name).unlink()


def write_again(write: Callable[[], None], holds: Callable[[], bool]) -> None:
    """Write a file to a store, if need be after some attempts: the same bytes under the same name.

    Args:
        write: Writes it.
        holds: Whether it has those bytes now. Asked if a client finds no upload to finish: it asks
            again where an answer was lost, and the store may have carried out what was asked first.

    Raises:
        DataError: The store fails.
    """

    def attempt() -> None:
        try:
            write()
        except NotFoundError:
            if not holds():
                raise

    retried(attempt)


@contextlib.contextmanager
def uploading(fs: Any, path: str, url: str, secrets: Collection[str]) -> Iterator[BinaryIO]:
    """Open an object for writing; it appears when the block ends well.

    Args:
        fs: The file system.
        path: The object's path there.
        url: For errors.
        secrets: What errors must not show.

    Yields:
        A buffered stream of bytes.

    Raises:
        DataError: The store fails.
    """
    upload = Upload(fs, path, url, secrets)
    buffered = io.BufferedWriter(upload, WRITE_BUFFER)
    try:
        yield cast(BinaryIO, buffered)
        if not buffered.closed:
            buffered.flush()
        upload.finish()
    except BaseException:
        upload.give_up()
        raise
    finally:
        with contextlib.suppress(Exception):
            buffered.close()

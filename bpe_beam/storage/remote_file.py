"""A remote file as a stream of bytes: read by ranges, whose lengths are checked."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Collection
from typing import Any, BinaryIO, cast

from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.ranges import RangeSource
from bpe_beam.storage.retry import ShortReadError, retried
from bpe_beam.storage.stored_file import StoredFile

FIRST_BLOCK = 256 << 10
"""Bytes of the first range after a seek, which may be for a few bytes only."""
BLOCK = 4 << 20
"""Bytes of a range at most, when reading goes on."""
_GROWTH = 4
_BUFFER = 64 << 10


def open_reader(
    open_: Callable[[], RangeSource], url: str, secrets: Collection[str]
) -> tuple[StoredFile, BinaryIO]:
    """Open a remote file for reading: seekable, with one block of at most BLOCK bytes in memory.

    Args:
        open_: Opens the file's ranges.
        url: The file's URL, for errors.
        secrets: Texts that errors must not show.

    Returns:
        The file's description, and the stream.

    Raises:
        DataError: The file cannot be opened, also after retries. Reading raises it too, if a range
            is short each time.
    """
    with named_errors("read", url, secrets):
        source = retried(open_)
    raw = _RemoteFile(source, url, secrets)
    return source.file, cast(BinaryIO, io.BufferedReader(raw, _BUFFER))


def read_range(source: RangeSource, start: int, end: int) -> bytes:
    """Return the bytes of a file from `start` to `end`.

    Args:
        source: The file.
        start: The position of the first byte.
        end: The position behind the last byte, at most the file's size.

    Raises:
        ShortReadError: The answer had another length each time.
    """

    def fetch() -> bytes:
        data = source.fetch(start, end)
        if len(data) != end - start:
            raise ShortReadError(f"got {len(data)} bytes for the range from {start} to {end}")
        return data

    return retried(fetch) if start < end else b""


class _RemoteFile(io.RawIOBase):
    """A remote file with one block in memory."""

    def __init__(self, source: RangeSource, url: str, secrets: Collection[str]) -> None:
        super().__init__()
        self._source, self._url, self._secrets = source, url, secrets
        self._position = 0
        self._block = memoryview(b"")
        self._block_start = -1
        self._next_block = FIRST_BLOCK

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position; nothing is read yet."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.file.size}
        if base[whence] + offset < 0:
            raise ValueError(f"the position must be at least 0, got {base[whence] + offset}")
        self._position = base[whence] + offset
        return self._position

    def readinto(self, view: Any, /) -> int:
        """Read from the block in memory, after loading the block of this position if needed."""
        at = self._position - self._block_start
        if not 0 <= at < len(self._block):
            at = 0
            if not self._read_block():
                return 0
        data = self._block[at : at + len(view)]
        memoryview(view)[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Close the file, ignoring errors: the bytes that were read are complete."""
        if not self.closed:
            super().close()
            self._block = memoryview(b"")
            with contextlib.suppress(Exception):
                self._source.close()

    def _read_block(self) -> bool:
        sequential = self._position == self._block_start + len(self._block)
        self._next_block = min(self._next_block * _GROWTH, BLOCK) if sequential else FIRST_BLOCK
        end = min(self._position + self._next_block, self._source.file.size)
        if end <= self._position:
            return False
        self._block = memoryview(b"")  # not two blocks at a time
        with named_errors("read", self._url, self._secrets):
            data = read_range(self._source, self._position, end)
        self._block, self._block_start = memoryview(data), self._position
        return True

"""A remote file as a stream of bytes: read by ranges, each held to its length."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Collection
from typing import Any, BinaryIO, cast

from bpe_beam.storage.failures import ShortRead, named_errors, retried
from bpe_beam.storage.file_info import Found
from bpe_beam.storage.ranges import Opened

FIRST_BLOCK = 256 << 10
"""Bytes of the first range after a jump: it may be for a few bytes only."""
BLOCK = 4 << 20
"""Bytes of a range, when reading goes on."""
_GROWTH = 4
_BUFFER = 64 << 10


def open_reader(
    open_: Callable[[], Opened], url: str, secrets: Collection[str]
) -> tuple[Found, BinaryIO]:
    """Opens a remote file for reading: seekable, with one block of at most BLOCK bytes in memory.

    Args:
        open_: Opens the file's ranges.
        url: For errors.
        secrets: What errors must not show.

    Returns:
        The file's facts, to which reading is held, and the stream.

    Raises:
        DataError: It cannot be opened, also after some attempts. Reading raises it too: what
            ends short is read again, and then an error.
    """
    with named_errors("read", url, secrets):
        opened = retried(open_)
    raw = RemoteFile(opened, url, secrets)
    return opened.found, cast(BinaryIO, io.BufferedReader(raw, _BUFFER))


def read_part(opened: Opened, start: int, end: int) -> bytes:
    """Exactly these bytes of a file; they must lie within it.

    Raises:
        ShortRead: The answer was shorter, or longer, each time.
    """

    def part() -> bytes:
        data = opened.fetch(start, end)
        if len(data) != end - start:
            raise ShortRead(f"bytes {start} to {end} were asked for, and {len(data)} bytes came")
        return data

    return retried(part) if start < end else b""


class RemoteFile(io.RawIOBase):
    """A remote file, of which one block is in memory."""

    def __init__(self, opened: Opened, url: str, secrets: Collection[str]) -> None:
        super().__init__()
        self._opened, self._url, self._secrets = opened, url, secrets
        self._position = 0
        self._block = memoryview(b"")
        self._block_start = -1
        self._next_block = FIRST_BLOCK

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The place of the next byte."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes to a place; costs nothing yet."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._opened.found.size}
        if base[whence] + offset < 0:
            raise ValueError(f"a place before the file's start: {base[whence] + offset}")
        self._position = base[whence] + offset
        return self._position

    def readinto(self, view: Any, /) -> int:
        """Reads what is in memory of this place, and a block first if there is nothing."""
        at = self._position - self._block_start
        if not 0 <= at < len(self._block):
            at = 0
            if not self._read_block():
                return 0
        piece = self._block[at : at + len(view)]
        memoryview(view)[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def close(self) -> None:
        """Closes the file; whatever goes wrong with that has no effect on what was read."""
        if not self.closed:
            super().close()
            self._block = memoryview(b"")
            with contextlib.suppress(Exception):
                self._opened.close()

    def _read_block(self) -> bool:
        went_on = self._position == self._block_start + len(self._block)
        self._next_block = min(self._next_block * _GROWTH, BLOCK) if went_on else FIRST_BLOCK
        end = min(self._position + self._next_block, self._opened.found.size)
        if end <= self._position:
            return False
        self._block = memoryview(b"")  # not two blocks at a time
        with named_errors("read", self._url, self._secrets):
            data = read_part(self._opened, self._position, end)
        self._block, self._block_start = memoryview(data), self._position
        return True

"""The bytes of a file that a reader has in memory, moved along the file."""

from __future__ import annotations

import numpy as np

from bpe_beam.corpus.streams import BrokenStream, Source

END = 1 << 62
"""A position after the end of every file."""

BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which is no part of a file's first record."""

_BEYOND_STOP = 64 << 10

_MAX_GROWN = 64 << 10
"""The size to which a smaller block grows where all of it is used, as among empty lines."""


class FileBuffer:
    """The bytes of a file that are in memory, from `base` on.

    Attributes:
        base: The position of the first byte in memory.
        data: The bytes in memory.
        final: Whether the file ends with these.
        broken: Why the file cannot be read further; empty if it can. `final` is true then as well.
        lost: How many stored bytes are lost then.
    """

    def __init__(self, source: Source, base: int, block: int, stop: int = END) -> None:
        self.base = base
        self.data = memoryview(b"")
        self.final = False
        self.broken = ""
        self.lost = 0
        self.source = source
        self._block = block
        self._stop = stop
        self._buffer = memoryview(b"")  # used again and again: batches are copies

    @property
    def end(self) -> int:
        """The position after the last byte in memory."""
        return self.base + len(self.data)

    def advance(self, used: int) -> None:
        """Drop the first `used` bytes, and read more after the rest.

        At least as much as the rest is read, so that a long record is not copied again and again.
        """
        rest = self.data[used:]
        if used and not rest:
            self._block = max(self._block, min(2 * self._block, _MAX_GROWN))
        ahead = max(0, self._stop - self.end) + _BEYOND_STOP
        room = len(rest) + max(min(self._block, ahead), len(rest))
        if room > len(self._buffer):
            self._buffer = np.empty(max(room, 2 * self._block), np.uint8).data
        buffer = self._buffer[:room]
        buffer[: len(rest)] = rest
        filled = len(rest)
        try:
            while filled < len(buffer):
                count = self.source.readinto(buffer[filled:])
                if not count:
                    self.final = True
                    break
                filled += count
        except BrokenStream as error:
            self.final, self.broken, self.lost = True, str(error), error.lost
        self.base += used
        self.data = buffer[:filled]

    def bytes(self, start: int, end: int) -> bytes:
        """Return the bytes between two positions, as far as they are in memory."""
        return bytes(self.data[start - self.base : end - self.base])

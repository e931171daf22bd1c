"""The part of a file that a reader has in memory, moved along the file."""

from __future__ import annotations

import numpy as np

from bpe_beam.corpus.streams import BrokenStream, Source

END = 1 << 62
"""Behind every place in a file."""

BOM = b"\xef\xbb\xbf"
"""A byte order mark, which is no part of a file's first record."""

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""The byte order marks of another encoding; little-endian UTF-32 begins with the first of them,
too. No UTF-8 has these bytes."""

_BEYOND_STOP = 64 << 10


class Window:
    """The part of a file that is in memory: its bytes from `base` on.

    Attributes:
        base: The place in the (decompressed) file of the first byte here.
        data: The bytes.
        final: The file ends where these end.
        broken: Why the file cannot be read further, if so; then `final` is true as well.
        lost: How many stored bytes are lost then.
        source: Where the bytes come from.
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
        self._buffer = memoryview(b"")  # used again and again: batches hold copies

    def advance(self, used: int) -> None:
        """Drops the first `used` bytes and reads more behind the rest: a block, but little beyond
        `stop`, where only the last record's end is wanted; and as much as is kept, if that is
        more, so that a long record is not copied again and again."""
        kept = self.data[used:]
        ahead = max(0, self._stop - self.base - len(self.data)) + _BEYOND_STOP
        room = len(kept) + max(min(self._block, ahead), len(kept))
        if room > len(self._buffer):
            self._buffer = np.empty(max(room, 2 * self._block), np.uint8).data
        buffer = self._buffer[:room]
        buffer[: len(kept)] = kept
        filled = len(kept)
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

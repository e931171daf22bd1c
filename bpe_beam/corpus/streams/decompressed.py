"""What all compressed files share: a block of stored bytes, and handing out what came of them."""

from __future__ import annotations

from bpe_beam.corpus.streams.stored import Stored

STORED_BLOCK = 256 << 10


class BrokenStream(Exception):
    """Stored data cannot be decompressed further. The message says why, and at which byte.

    Attributes:
        lost: How many stored bytes there are of which nothing was handed out, or nothing that can
            be relied on.
    """

    def __init__(self, why: str, lost: int) -> None:
        super().__init__(why)
        self.lost = lost


class Decompressed:
    """Decompressed bytes of a file, from the unit at which the stored bytes stand.

    Attributes:
        end: Where the slice ends, in stored bytes; see `Source.boundary`.
        units: How many units have begun.
        first, boundary, boundary_unit: See `Source`.
    """

    def __init__(self, stored: Stored) -> None:
        self.first = stored.first
        self.boundary: int | None = None
        self.boundary_unit = 0
        self.end = stored.size
        self.units = 0
        self._stored = stored
        self._input = b""
        self._at = 0  # so much of the input is used up
        self._sound = stored.position  # what is stored before has been handed out
        self._unit = stored.position  # where the last unit begins
        self._output = b""
        self._handed_out = 0

    def readinto(self, view: memoryview) -> int:
        """See `Source`."""
        while not self._output:
            output = self.advance(len(view))
            if output is None:
                return 0
            self._output = output
        count = min(len(view), len(self._output))
        view[:count] = memoryview(self._output)[:count]
        self._output = self._output[count:]
        self._handed_out += count
        return count

    def close(self) -> None:
        """See `Source`."""
        self._stored.close()

    def advance(self, limit: int) -> bytes | None:
        """Decompresses some more; None at the end. What comes out need not be shorter than
        `limit`, but is bounded."""
        raise AssertionError("each kind has its own")

    def _begin_unit(self, at: int) -> None:
        """A unit begins at this stored byte; what came before it has been handed out."""
        self.units += 1
        self._unit = at
        if self.boundary is None and at >= self.end:
            self.boundary = self._handed_out
            self.boundary_unit = at

    @property
    def _place(self) -> int:
        """The stored byte that is used next."""
        return self._stored.position - len(self._input) + self._at

    def _fill(self, count: int) -> bool:
        """Sees to it that `count` bytes of input are there, as long as the file has them."""
        while len(self._input) - self._at < count:
            more = self._stored.read(STORED_BLOCK)
            if not more:
                return False
            self._input, self._at = self._input[self._at :] + more, 0
        return True

    def _wrong_checksum(self, why: object) -> BrokenStream:
        """All of a unit may be wrong whose checksum does not fit."""
        self._sound = self._unit
        return self._broken(why)

    def _broken(self, why: object) -> BrokenStream:
        size = self._stored.size
        return BrokenStream(f"{why}, {self._place} of {size} stored bytes read", size - self._sound)

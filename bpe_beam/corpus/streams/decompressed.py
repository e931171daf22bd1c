"""The base of all compressed files: a block of stored bytes, and its decompressed bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod

from bpe_beam.corpus.streams.stored import Stored

STORED_BLOCK = 256 << 10
"""Stored bytes that are read at once."""


class BrokenStream(Exception):
    """Stored data cannot be decompressed further."""

    def __init__(self, why: str, lost: int) -> None:
        super().__init__(why)
        self.lost = lost


class Decompressed(ABC):
    """Decompressed bytes of a file, from the unit at the position of the stored bytes on.

    Attributes:
        first: The stored byte at which reading began.
        end: The slice's end in stored bytes.
        units: The number of units (members, frames) that have begun.
        boundary: The number of bytes before the first unit that begins at the slice's end or after
            it; None until such a unit is reached. It is set before any byte of that unit is
            returned.
        boundary_unit: The stored byte at which that unit begins.
    """

    def __init__(self, stored: Stored) -> None:
        self.first = stored.position
        self.boundary: int | None = None
        self.boundary_unit = 0
        self.end = stored.size
        self.units = 0
        self._stored = stored
        self._input = b""
        self._at = 0  # how much of the input is used
        self._sound = stored.position  # the stored bytes before have been returned
        self._unit = stored.position  # where the last unit begins
        self._output = b""
        self._returned = 0

    def readinto(self, view: memoryview) -> int:
        """Fill a view from its start; return how many bytes, 0 at the end."""
        while not self._output:
            output = self.advance(len(view))
            if output is None:
                return 0
            self._output = output
        count = min(len(view), len(self._output))
        view[:count] = memoryview(self._output)[:count]
        self._output = self._output[count:]
        self._returned += count
        return count

    def close(self) -> None:
        """Close the file."""
        self._stored.close()

    @abstractmethod
    def advance(self, limit: int) -> bytes | None:
        """Return some more decompressed bytes, about `limit` of them; None at the end."""

    def _begin_unit(self, at: int) -> None:
        """Note that a unit begins at this stored byte; the bytes before it have been returned."""
        self.units += 1
        self._unit = at
        if self.boundary is None and at >= self.end:
            self.boundary = self._returned
            self.boundary_unit = at

    @property
    def _position(self) -> int:
        """The stored byte that is used next."""
        return self._stored.position - len(self._input) + self._at

    def _fill(self, count: int) -> bool:
        """Load `count` bytes of input; return False if the file ends before."""
        while len(self._input) - self._at < count:
            more = self._stored.read(STORED_BLOCK)
            if not more:
                return False
            self._input, self._at = self._input[self._at :] + more, 0
        return True

    def _wrong_checksum(self, why: object) -> BrokenStream:
        """Return the error of a unit whose checksum is wrong: all of it may be wrong."""
        self._sound = self._unit
        return self._broken(why)

    def _broken(self, why: object) -> BrokenStream:
        size = self._stored.size
        return BrokenStream(
            f"{why}, {self._position} of {size} stored bytes read", size - self._sound
        )

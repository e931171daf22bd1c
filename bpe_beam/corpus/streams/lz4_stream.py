"""Reading LZ4, of any number of frames; such a file is read as one."""

from __future__ import annotations

import re

import pyarrow as pa

from bpe_beam.corpus.streams.decompressed import Decompressed
from bpe_beam.corpus.streams.stored import Stored
from bpe_beam.errors import DataError

_STEP = 64 << 10  # what an error loses of what was good, at most
_CHECKSUM = re.compile("[cC]hecksum|frameSize")

_READ_AHEAD = 64 << 10
"""What pyarrow reads at once, and may not have used when it hands something out."""


class Lz4(Decompressed):
    """LZ4 frames, by pyarrow."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored)
        self._raw = _Raw(stored)
        self._reader = pa.CompressedInputStream(pa.PythonFile(self._raw, mode="r"), "lz4")

    def advance(self, limit: int) -> bytes | None:
        """See `Decompressed`."""
        self._sound = max(0, self._stored.position - _READ_AHEAD)
        try:
            output: bytes = self._reader.read(max(1, min(limit, _STEP)))
        except (pa.ArrowException, OSError) as error:
            if self._raw.failure is not None:
                raise self._raw.failure from None
            broken = self._wrong_checksum if _CHECKSUM.search(str(error)) else self._broken
            raise broken(f"the LZ4 stream is corrupt ({error})") from None
        return output or None


class _Raw:
    """The stored bytes, as pyarrow reads them.

    Attributes:
        failure: What storage raised, which pyarrow may give another type.
    """

    closed = False

    def __init__(self, stored: Stored) -> None:
        self.failure: DataError | None = None
        self._stored = stored

    def read(self, count: int) -> bytes:
        """At most so many bytes; none at the end."""
        try:
            return self._stored.read(count)
        except DataError as error:
            self.failure = error
            raise

    def readable(self) -> bool:
        """Whether it can be read: it can."""
        return True

    def writable(self) -> bool:
        """Whether it can be written: it cannot."""
        return False

    def seekable(self) -> bool:
        """Whether there is a way back: there is none."""
        return False

    def close(self) -> None:
        """Does nothing: the file is closed by who opened it."""

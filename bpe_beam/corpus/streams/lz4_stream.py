"""Reading LZ4, of any number of frames; such a file is read as one."""

from __future__ import annotations

import re

import pyarrow as pa

from bpe_beam.corpus.streams.decompressed import Decompressed
from bpe_beam.corpus.streams.stored import Stored

_STEP = 64 << 10  # the most good bytes that an error loses
_CHECKSUM = re.compile("[cC]hecksum|frameSize")

_READ_AHEAD = 64 << 10
"""The bytes that pyarrow reads at once, and may not have used when it returns some."""


class Lz4(Decompressed):
    """LZ4 frames, by pyarrow."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored)
        self._reader = pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), "lz4")

    def advance(self, limit: int) -> bytes | None:
        """See `Decompressed`."""
        self._sound = max(0, self._stored.position - _READ_AHEAD)
        try:
            output: bytes = self._reader.read(max(1, min(limit, _STEP)))
        except (pa.ArrowException, OSError) as error:
            self._stored.check()
            broken = self._wrong_checksum if _CHECKSUM.search(str(error)) else self._broken
            raise broken(f"the LZ4 stream is corrupt ({error})") from None
        return output or None

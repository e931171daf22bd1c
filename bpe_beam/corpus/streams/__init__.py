"""The bytes of a file: checked against the plan, decompressed, from any unit on.

Memory is bounded whatever the compression ratio is. Stored data that is corrupt or ends too soon
raises `BrokenStream`, after everything before the flaw has been returned: for gzip to the stored
byte, for the others to the block. Checksums follow their data: if a decompressor accepts damaged
data, wrong bytes may have been returned before the error.

A gzip file of many members, and a zstd file of many frames, can be read from any of these units: a
slice in the middle of such a file begins at its first unit. A unit begins with a few known
bytes, which other data may contain, too. So a candidate is decompressed for a while; data that only
looks like a unit fails soon. If a candidate passes and is none (say, a gzip file stored as it is
within another), the job notices it at its end, see `boundaries.py`.
"""

from __future__ import annotations

import contextlib
import io
import re

from bpe_beam.corpus.streams.decompressed import KINDS, STORED_BLOCK, BrokenStream, Decompressed
from bpe_beam.corpus.streams.stored import Stored, ignore

__all__ = [
    "UNIT_START",
    "BrokenStream",
    "Source",
    "Stored",
    "decompress",
    "fill",
    "first_decompressed",
]

Source = Stored | Decompressed
"""Bytes of a file from some position to its end."""

UNIT_START = {
    "gzip": re.compile(rb"\x1f\x8b\x08(?=[\x00-\x1f])"),  # the other flags are reserved
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
}
"""The compressions whose files may have many units, and the first bytes of a unit."""

_TRIED_BYTES = 256 << 10
"""Bytes of a candidate that are decompressed: stored or decompressed ones, whichever is more."""

_MAX_TRIALS = 200
"""Failures after which no further candidate of a slice is tried. Then the slice has no unit, the
slices are not contiguous, and the file is read as one."""


def decompress(stored: Stored, compression: str, end: int) -> Decompressed | None:
    """Return the decompressed bytes of a file from the first unit at or after its position on."""
    if stored.position:
        unit = None
        try:
            unit = _find_unit(stored, compression, end)
        finally:
            if unit is None:
                stored.close()
        if unit is None:
            return None
        stored.seek(unit)
    source = KINDS[compression](stored)
    source.end = end
    return source


def _find_unit(stored: Stored, compression: str, end: int) -> int | None:
    """Return where the first unit at or after the position and before `end` begins, or None.

    Cost: reads up to the unit, and a block for each candidate; two blocks are in memory.
    """
    base, data, trials = stored.position, b"", 0
    while base < end:
        stored.seek(base + len(data))
        more = stored.read(STORED_BLOCK)
        data += more
        for match in UNIT_START[compression].finditer(data):
            unit = base + match.start()
            if unit >= end or trials == _MAX_TRIALS:
                return None
            if _is_unit(stored, compression, unit):
                return unit
            trials += 1
        if not more:
            return None
        used = max(0, len(data) - 3)  # the first bytes of a unit are four
        base, data = base + used, data[used:]
    return None


def _is_unit(stored: Stored, compression: str, start: int) -> bool:
    """Return whether the bytes from `start` on decompress, as far as they are tried."""
    stored.seek(start)
    tried = KINDS[compression](stored)
    size = 0
    with contextlib.closing(tried.outputs):
        try:
            while max(size, stored.position - start) <= _TRIED_BYTES and tried.units < 2:
                output = tried.advance(STORED_BLOCK)
                if output is None:
                    break
                size += len(output)
        except BrokenStream:
            return tried.units > 1
    return True


class _Head(Stored):
    """The first bytes of a file, as if they were all of it."""

    def __init__(self, data: bytes) -> None:
        self.size, self.position, self.closed = len(data), 0, False
        self._url, self._on_read, self._failure = "", ignore, None
        self._file = io.BytesIO(data)


def first_decompressed(head: bytes, compression: str, count: int) -> bytes:
    """Return the first bytes of a compressed file's content, as far as its head shows them.

    The head may end within the stream, and damage is reported when the file is read.
    """
    content = memoryview(bytearray(count))
    with contextlib.closing(KINDS[compression](_Head(head))) as source:
        filled, _ = fill(source, content)
    return bytes(content[:filled])


def fill(source: Source, view: memoryview) -> tuple[int, BrokenStream | None]:
    """Fill a view from its start, with fewer bytes only where the source ends or is broken.

    Returns how many bytes it has, and the error if the source is broken.
    """
    filled = 0
    try:
        while filled < len(view) and (count := source.readinto(view[filled:])):
            filled += count
    except BrokenStream as error:
        return filled, error
    return filled, None

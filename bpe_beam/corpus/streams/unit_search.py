"""Where a slice in the middle of a compressed file begins: at its first unit.

A unit (gzip member, zstd frame) begins with a few known bytes, which other data may contain, too.
So a candidate is decompressed for a while; data that only looks like a unit fails soon. A candidate
that passes and is none (say, a gzip file stored as it is within another) is noticed at the job's
end: every slice must begin where the one before it ended; see `boundaries.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bpe_beam.corpus.streams.decompressed import STORED_BLOCK, BrokenStream, Decompressed
from bpe_beam.corpus.streams.stored import Stored

UNIT_START = {
    "gzip": re.compile(rb"\x1f\x8b\x08(?=[\x00-\x1f])"),  # the other flags are reserved
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
}
"""The compressions whose files may have many units, and the first bytes of a unit."""

_TRIED_BYTES = 256 << 10
"""How much of a candidate is decompressed, in stored bytes or in decompressed ones."""

_MOST_TRIALS = 200
"""After so many failures, no further candidate of a slice is tried."""

_START_BYTES = 4


def find_unit(
    stored: Stored,
    compression: str,
    kind: Callable[[Stored], Decompressed],
    start: int,
    end: int,
) -> int | None:
    """Return the stored byte at which the first unit in [start, end) begins, or None.

    Data made to fail many trials is given up: then no unit is found here, the slices are not
    contiguous, and the file is read as one.

    Args:
        stored: The file.
        compression: One of UNIT_START.
        kind: Returns the decompressed bytes of a stored file.
        start: The first position to look at.
        end: The position after the last one to look at.

    Cost: reads up to the unit, and a block for each candidate; two blocks are in memory.
    """
    base, data, trials = start, b"", 0
    while base < end:
        stored.seek(base + len(data))
        more = stored.read(STORED_BLOCK)
        data += more
        for found in UNIT_START[compression].finditer(data):
            unit = base + found.start()
            if unit >= end or trials == _MOST_TRIALS:
                return None
            if _is_unit(stored, kind, unit):
                return unit
            trials += 1
        if not more:
            return None
        used = max(0, len(data) - _START_BYTES + 1)
        base, data = base + used, data[used:]
    return None


def _is_unit(stored: Stored, kind: Callable[[Stored], Decompressed], start: int) -> bool:
    """Return whether the bytes from `start` on decompress, as far as they are tried."""
    stored.seek(start)
    tried = kind(stored)
    size = 0
    try:
        while max(size, stored.position - start) <= _TRIED_BYTES and tried.units < 2:
            output = tried.advance(STORED_BLOCK)
            if output is None:
                break
            size += len(output)
    except BrokenStream:
        return tried.units > 1
    return True

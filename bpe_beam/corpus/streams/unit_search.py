"""Where a slice in the middle of a compressed file begins: at its first unit.

A unit (gzip member, zstd frame) begins with a few known bytes, which other data may contain, too.
So a candidate is decompressed for a while; data that only looks like a unit fails soon. A candidate
that passes and is none (say, a gzip file stored as it is within another) is noticed at the job's
end: every slice must begin where the one before it ended; see `boundaries.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from bpe_beam.corpus.streams.decompressed import STORED_BLOCK, BrokenStream, Decompressed
from bpe_beam.corpus.streams.stored import Stored

UNIT_MAGIC = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd"}
"""The compressions whose files may have many units, and the first bytes of a unit."""

_TRIED_BYTES = 256 << 10
"""How much of a candidate is decompressed, in stored bytes or in decompressed ones."""

_MOST_TRIALS = 200
"""After so many failures, no further candidate of a slice is tried."""

_GZIP_RESERVED_FLAGS = 0xE0


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
        compression: One of UNIT_MAGIC.
        kind: Returns the decompressed bytes of a stored file.
        start: The first position to look at.
        end: The position after the last one to look at.

    Cost: reads up to the unit, and a block for each candidate; two blocks are in memory.
    """
    magic = UNIT_MAGIC[compression]
    base, data = start, b""
    trials = 0
    while base < end:
        stored.seek(base + len(data))
        more = stored.read(STORED_BLOCK) if stored.position < stored.size else b""
        data += more
        found = data.find(magic)
        while 0 <= found < end - base:
            if _may_begin(data, found, compression):
                if trials == _MOST_TRIALS:
                    return None
                if _is_unit(stored, kind, base + found):
                    return base + found
                trials += 1
            found = data.find(magic, found + 1)
        if not more:
            return None
        used = max(0, len(data) - len(magic) + 1)
        base, data = base + used, data[used:]
    return None


def _may_begin(data: bytes, at: int, compression: str) -> bool:
    """Return whether the byte after the first ones of a unit may be that of a unit."""
    if compression != "gzip" or at + 3 >= len(data):
        return True
    return not data[at + 3] & _GZIP_RESERVED_FLAGS


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

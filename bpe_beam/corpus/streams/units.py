"""Where a slice in the middle of a compressed file begins: at its first unit.

A unit (gzip member, zstd frame) begins with a few known bytes, which other data may hold, too. So
what looks like one is decompressed for a while; data that only looks like a unit fails soon. What
still passes (say, a gzip file stored as it is within another) is found out at the job's end, where
every slice must begin where the one before it ended; see `boundaries.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from bpe_beam.corpus.streams.decompressed import STORED_BLOCK, BrokenStream, Decompressed
from bpe_beam.corpus.streams.stored import Stored

CUTTABLE = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd"}
"""Compressions whose files may have many units, and how a unit begins."""

_TRIED_BYTES = 256 << 10
"""So much of what may be a unit is decompressed, in stored bytes or in bytes that come out."""

_MOST_TRIALS = 200
"""Of data that fails them so often, it is not tried what else begins there."""

_GZIP_RESERVED_FLAGS = 0xE0


def find_unit(
    stored: Stored,
    compression: str,
    kind: Callable[[Stored], Decompressed],
    start: int,
    end: int,
) -> int | None:
    """The stored byte at which the first unit in [start, end) begins, or None.

    Args:
        stored: The file.
        compression: One of CUTTABLE.
        kind: Decompresses it.
        start: Where to look first.
        end: Behind the last place to look at.

    Cost: reads to the place it finds, and a block for each place that is tried; holds two blocks.
    Data made to fail many trials is given up: then no unit is found here, the slices are not
    contiguous, and the file is read as one.
    """
    magic = CUTTABLE[compression]
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
    """Whether what follows the first bytes of a unit does not rule it out."""
    if compression != "gzip" or at + 3 >= len(data):
        return True
    return not data[at + 3] & _GZIP_RESERVED_FLAGS


def _is_unit(stored: Stored, kind: Callable[[Stored], Decompressed], place: int) -> bool:
    """Whether what begins there decompresses as far as it is tried."""
    stored.seek(place)
    tried = kind(stored)
    size = 0
    try:
        while max(size, stored.position - place) <= _TRIED_BYTES and tried.units < 2:
            output = tried.advance(STORED_BLOCK)
            if output is None:
                break
            size += len(output)
    except BrokenStream:
        return tried.units > 1
    return True

"""The segments of a round, gathered for the trainer; cut again where there are too many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.counts.packed_words import Columns, PackedCounts, checked, columns_of
from bpe_beam.training.symbols import WordSymbols
from bpe_beam.training.trainer_limits import Room, Size, size_of

_SMALL_TABLE = 1_000_000
"""Bytes of a table that is never too large."""

Widths = npt.NDArray[np.uint32] | None
"""The number of characters that each id covers; None where no rule needs it."""


class FrequentPairs(NamedTuple):
    """The frequent pairs of a round, and how often each occurs in the words."""

    lefts: npt.NDArray[np.uint32]
    rights: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.int64]


def width_of(symbols: npt.NDArray[np.uint32], widths: npt.NDArray[np.uint32]) -> int:
    """Return the number of characters that symbols cover.

    Args:
        symbols: uint32, their ids.
        widths: uint32, the number of characters that each id covers.
    """
    return int(widths[symbols].sum(dtype=np.int64))


def gather(packed: Iterable[Columns], widths: Widths = None) -> WordSymbols:
    """Return packed segments as one sequence.

    Args:
        packed: Packed segments, in blocks.
        widths: Gives the segments their spans.
    """
    symbols, offsets = [np.zeros(0, np.uint32)], [np.zeros(1, np.int64)]
    counts = [np.zeros(0, np.int64)]
    end = 0
    for data, bounds, more in packed:
        with checked("segments"):
            unpacked, ends = _native.unpack_symbols(data, bounds)
        symbols.append(unpacked)
        offsets.append(ends[1:] + end)
        counts.append(more)
        end += len(unpacked)
    ids = np.concatenate(symbols)
    spans = None if widths is None else widths[ids]
    return WordSymbols(ids, np.concatenate(offsets), np.concatenate(counts), spans)


def cut_to_fit(
    read: Callable[[], Iterable[Columns]],
    frequent: FrequentPairs,
    floor: int,
    room: Room,
    widths: Widths,
) -> tuple[WordSymbols, int] | None:
    """Cut segments again, by higher thresholds, until a trainer has room for them.

    Reads all segments for each threshold that it tries, each half as high again as the one before.
    Takes no more than the room's memory.

    Args:
        read: Returns the packed segments, each time it is called.
        frequent: All pairs that count at least `floor`.
        floor: The threshold of the segments.
        room: The room of the trainer.
        widths: See `gather`.

    Returns:
        The segments, added up, and their threshold; None if not even those of the pairs with the
        highest count fit.
    """
    most = int(frequent.counts.max(initial=0))
    while floor < most:
        floor = min(max(floor + 1, floor * 3 // 2), most)
        kept = frequent.counts >= floor
        pairs = _native.FrequentPairs(frequent.lefts[kept], frequent.rights[kept])
        segments = _added_up(read(), pairs, room, widths)
        if segments is not None:
            return segments, floor
    return None


def _added_up(
    packed: Iterable[Columns], pairs: _native.FrequentPairs, room: Room, widths: Widths
) -> WordSymbols | None:
    """Return segments, cut and added up; None as soon as there are too many."""
    table = PackedCounts()
    for columns in packed:
        with checked("segments"):
            cut = pairs.segments(*columns, singles=False)
        table.add(cut)
        # A segment has at least two symbols.
        if not room.fits(Size(len(table), 2 * len(table), 2 * len(table))):
            return None
        if table.memory_bytes > max(room.memory, _SMALL_TABLE):
            return None
    segments = gather((columns_of(block) for _, block in table.blocks(1)), widths)
    return segments if room.fits(size_of(segments)) else None

"""The segments of a round, put together for the learner; fewer of them where they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.counts.packed_words import Columns, PackedCounts, checked, columns_of
from bpe_beam.training.trainer_limits import Room, Size

_SMALL_TABLE = 1_000_000
"""Bytes of a table that is never too large."""


class Segments(NamedTuple):
    """Segments as a learner takes them.

    Attributes:
        symbols: uint32, one after another.
        offsets: int64[segments + 1], where each begins.
        counts: int64[segments].
    """

    symbols: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def size(self, widths: npt.NDArray[np.uint32] | None) -> Size:
        """How much there is; `widths`: the characters of each id, where the learner is told."""
        width = len(self.symbols) if widths is None else width_of(self.symbols, widths)
        return Size(len(self.counts), len(self.symbols), width)


def width_of(symbols: npt.NDArray[np.uint32], widths: npt.NDArray[np.uint32]) -> int:
    """The characters that symbols cover, from those of each id."""
    return int(widths[symbols].sum(dtype=np.int64))


class FrequentPairs(NamedTuple):
    """The pairs that segments were cut by, and how often each stands in the words."""

    lefts: npt.NDArray[np.uint32]
    rights: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.int64]


def gather(pieces: Iterable[Columns]) -> Segments:
    """Puts packed segments together."""
    symbols: list[npt.NDArray[np.uint32]] = [np.zeros(0, np.uint32)]
    offsets = [np.zeros(1, np.int64)]
    counts = [np.zeros(0, np.int64)]
    end = 0
    for data, bounds, more in pieces:
        with checked("segments"):
            unpacked, ends = _native.unpack_symbols(data, bounds)
        symbols.append(unpacked)
        offsets.append(ends[1:] + end)
        counts.append(more)
        end += len(unpacked)
    return Segments(np.concatenate(symbols), np.concatenate(offsets), np.concatenate(counts))


def cut_to_fit(
    read: Callable[[], Iterable[Columns]],
    frequent: FrequentPairs,
    floor: int,
    room: Room,
    widths: npt.NDArray[np.uint32] | None,
) -> tuple[Segments, int] | None:
    """Cuts segments again, by higher thresholds, until a learner over them takes little enough.

    Args:
        read: Gives the segments, as often as it is called.
        frequent: All pairs that count at least `floor`.
        floor: The threshold that they were cut by.
        room: What the learner may take.
        widths: The characters that each id covers, where the learner is told.

    Returns:
        The segments, added up, and their threshold; None where not even the pairs of the highest
        count fit.

    Cost: reads all segments for each threshold that it tries, each twice the one before. Holds no
    more than the room's memory.
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
    pieces: Iterable[Columns],
    pairs: _native.FrequentPairs,
    room: Room,
    widths: npt.NDArray[np.uint32] | None,
) -> Segments | None:
    """The segments, cut and added up; None as soon as they are too many."""
    table = PackedCounts()
    for piece in pieces:
        with checked("segments"):
            cut = pairs.segments(*piece, singles=False)
        table.add(cut)
        # A segment has at least two symbols.
        if not room.holds(Size(len(table), 2 * len(table), 2 * len(table))):
            return None
        if table.memory_bytes > max(room.memory, _SMALL_TABLE):
            return None
    segments = gather(columns_of(block) for _, block in table.blocks(1))
    return segments if room.holds(segments.size(widths)) else None

"""The merges that a round may take, from a small extract of words that are on workers; no Beam.

A trainer over all words needs them in memory. In rounds it gets *segments*: words are cut at
boundaries whose pair counts less than a threshold, and equal parts are added up. From these the
ordinary trainer with `min_frequency` at the threshold takes the very merges that it would take from
the words, until a merge makes a token that had an id already. `docs/algorithm.md` says why, for
WordPiece too, and `tests/helpers/reference_rounds.py` proves it and does it in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.counts.round_files import Columns, PackedCounts, checked, columns_of
from bpe_beam.training.merges import native_trainer
from bpe_beam.training.merges.symbols import WordSymbols
from bpe_beam.training.merges.words import Room, Size
from bpe_beam.training.recipe import TieBreak

DIVISOR = 4
"""The threshold of a round is the best count over this, unless that turns out too low."""

_MAXIMUM_DIVISOR = 64
_SMALL_TABLE = 1_000_000  # bytes of a table that is never too large

Widths = npt.NDArray[np.uint32] | None
"""The number of characters that each id covers; None where no rule needs it."""


class ShardPairs(NamedTuple):
    """A shard of pairs: all of at least the count `floor` are listed; `best_count` is 0 without."""

    floor: int
    best_count: int


class FrequentPairs(NamedTuple):
    """The frequent pairs of a round, and how often each occurs in the words."""

    lefts: npt.NDArray[np.uint32]
    rights: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.int64]


def threshold(shards: Sequence[ShardPairs], divisor: int) -> int:
    """Return the threshold of a round: the minimum count of a frequent pair."""
    best = max((shard.best_count for shard in shards), default=0)
    return max(1, *(shard.floor for shard in shards), -(-best // divisor))


def next_divisor(divisor: int, segments: Size, room: Room) -> int:
    """Return the divisor of the next round: greater while segments take little of the room."""
    if not room.fits(segments):
        return max(2, divisor // 2)
    has_more = Room(room.memory // 16, room.positions // 16).fits(segments)
    return min(_MAXIMUM_DIVISOR, divisor * 2) if has_more else divisor


def learn_round(
    vocabulary: native_trainer.Vocabulary, segments: WordSymbols, floor: int, *, cut: bool
) -> native_trainer.NewMerges:
    """Return all merges that count at least `floor`, as far as segments determine them."""
    if vocabulary.widths and segments.spans is None:
        spans = np.array(vocabulary.widths, np.uint32)[segments.ids]
        segments = segments._replace(spans=spans)
    return native_trainer.find_merges(
        native_trainer.make_learner(vocabulary, segments, floor, stop_at_known=cut)
    )


def batches_of(rows: Sequence[native_trainer.Row], known: int) -> list[npt.NDArray[np.uint32]]:
    """Return the merges of a round as workers apply them, each batch after the one before.

    Within a batch the lowest rank goes first in each word. That is the same as merge by merge where
    every joined token is new: its pairs were all learned later. The last merge of a round may make
    a token of the vocabulary, which occurs in pairs of lower rank: it is a batch by itself.

    Returns:
        uint32[merges, 3] for each batch.
    """
    next_id = known
    batches: list[list[native_trainer.Row]] = [[]]
    for row in rows:
        if row[2] < next_id:
            batches += [[row], []]
        else:
            batches[-1].append(row)
            next_id = row[2] + 1
    return [np.array(batch, np.uint32) for batch in batches if batch]


def gather(packed: Iterable[Columns], widths: Widths = None) -> WordSymbols:
    """Return packed segments as one sequence."""
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

    Reads all segments for each threshold that it tries, and takes no more than the room's memory.

    Returns:
        The segments, added up, and their threshold; None if not even the segments of the
        most frequent pairs fit.
    """
    best = int(frequent.counts.max(initial=0))
    while floor < best:
        floor = min(max(floor + 1, floor * 3 // 2), best)
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
    return segments if room.fits(segments.size) else None


def plain_batch(
    lefts: npt.NDArray[np.uint32],
    rights: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.int64],
    *,
    tie_break: TieBreak,
    joined: Callable[[int, int], bytes],
    known: Container[bytes],
    complete: bool,
) -> int:
    """Return how many of the best pairs are learned next, one after the other.

    Merges whose joined token is known come by themselves, so a batch may be applied by rank.
    `docs/algorithm.md` ("A plain batch") has the four rules that end a batch, and proves them.
    """
    assert tie_break != "first_seen"
    pairs: list[tuple[int, int]] = list(zip(lefts.tolist(), rights.tolist(), strict=True))
    by_level = tie_break == "greatest_bytes"
    taken_lefts: set[int] = set()
    taken_rights: set[int] = set()
    made: set[bytes] = set()

    def conflicts(pair: tuple[int, int]) -> bool:
        return pair[0] in taken_rights or pair[1] in taken_lefts

    taken = 0
    changes = (np.flatnonzero(np.diff(counts)) + 1).tolist()
    for begin, end in pairwise([0, *changes, len(counts)]):  # runs of equal counts
        cut_off = by_level and end == len(pairs) and not complete
        if taken and (cut_off or (by_level and any(map(conflicts, pairs[begin:end])))):
            break
        last_as_left = {pairs[number][0]: number for number in range(begin, end)}
        last_as_right = {pairs[number][1]: number for number in range(begin, end)}
        for number in range(begin, end):
            left, right = pairs[number]
            if conflicts((left, right)):
                return taken
            token = joined(left, right)
            is_known = token in made or token in known
            if is_known and taken:
                return taken
            taken += 1
            waiting = max(last_as_left.get(right, -1), last_as_right.get(left, -1)) > number
            if is_known or left == right or cut_off or (by_level and waiting):
                return taken
            taken_lefts.add(left)
            taken_rights.add(right)
            made.add(token)
    return taken

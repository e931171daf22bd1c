"""An estimate of the time that learning merges will take, for the time left.

The number of merges is no measure of it: the first hundred merges of a training may take as long as
the last ten thousand. There are five parts: words are spelled; they are laid out; now and then all
pairs are listed anew; merges change positions and neighbours; and every merge becomes a token in
the end. The learner counts what it has done. What is left is extrapolated:

- The share of all symbols that merges 2^k to 2^(k+1) visit differs little between corpora. What
  this corpus did differently in the last doubling is expected of the next ones too, less and less.
- The best pairs' counts fall like a power of the merge's number. This tells when the next list of
  pairs is due, how many pairs it may have, and whether pairs run out before the vocabulary is full.

WordPiece's likelihood merges rare pairs first and lists all pairs at the beginning; its merges take
about the same time each, the more the more pairs there are.

What each kind of work costs is known of one machine only, and memory is slower for larger corpora.
So costs are corrected by the time that the training at hand takes (`MeasuredCosts`).
`benchmarks/time_left.py` measures how good the estimate is.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from bpe_beam.training.measured_costs import MeasuredCosts, Seconds


class Kind(IntEnum):
    """A kind of work.

    Attributes:
        SPELLING: Symbols of words are found.
        LAYING_OUT: Symbols are laid out for the learner.
        TABLE_SLOT: A slot is read for a list of pairs that are counted in a table by their ids.
        TABLE_POSITION: A position is listed there.
        HASHED_SLOT: A slot is read for a list of pairs that are counted by a hash.
        HASHED_POSITION: A position is listed there.
        POSITION: A merge visits a position.
        NEIGHBOUR: A merge changes a pair of neighbours.
        MERGE: A merge is learned.
        ENTRY: A merge becomes a token in the end.
    """

    SPELLING = 0
    LAYING_OUT = 1
    TABLE_SLOT = 2
    TABLE_POSITION = 3
    HASHED_SLOT = 4
    HASHED_POSITION = 5
    POSITION = 6
    NEIGHBOUR = 7
    MERGE = 8
    ENTRY = 9


class _Cost(NamedTuple):
    """What is known of the cost of a kind of work before a training.

    Attributes:
        usual: What it usually costs, in nanoseconds.
        memory: How much of it is waiting for memory.
        own: How unsure it is, whatever the machine, as a share.
        varies: By how much it differs from one part of a training to the next.
    """

    usual: float
    memory: float
    own: float
    varies: float


_COSTS = {
    Kind.SPELLING: _Cost(2.3, 0.0, 0.5, 0.1),
    Kind.LAYING_OUT: _Cost(12.4, 0.0, 0.15, 0.1),
    Kind.TABLE_SLOT: _Cost(5.8, 0.0, 0.15, 0.1),
    Kind.TABLE_POSITION: _Cost(9.0, 0.5, 0.15, 0.1),
    Kind.HASHED_SLOT: _Cost(15.0, 0.5, 0.15, 0.1),
    Kind.HASHED_POSITION: _Cost(0.2, 1.0, 0.15, 0.1),
    Kind.POSITION: _Cost(22.0, 1.0, 0.15, 0.25),
    Kind.NEIGHBOUR: _Cost(160.0, 0.5, 0.3, 0.25),
    Kind.MERGE: _Cost(1_800.0, 0.0, 0.3, 0.25),
    Kind.ENTRY: _Cost(1_900.0, 0.0, 0.15, 0.1),
}
"""Those of `HASHED_POSITION` are for each square root of the pairs: more miss the caches."""
_MACHINE, _MEMORY = 0.4, 0.4
"""How unsure the speed of the machine is, and of its memory beside that, as shares."""

_SPELLING_CHARACTERS, _SPELLING_UNSURE = 65.0, 1.0
"""The cost of a symbol where words are spelled in characters, or by another tokenizer, and how
unsure it is."""
_LIKELIHOOD_LAYING_OUT, _LIKELIHOOD_LAYING_OUT_PAIR = 25.0, 3e-4
_LIKELIHOOD_MERGE, _LIKELIHOOD_MERGE_PAIR = 3_000.0, 0.1
_LIKELIHOOD_UNSURE = 0.2
"""The costs for the likelihood: of a symbol that is laid out, with its pairs listed, and of a
merge; and what each listed pair adds to them."""
_USUAL_CHARACTERS = 5_000
_LIKELIHOOD_PAIRS, _LIKELIHOOD_PAIRS_GROWTH = 1.0, 1.33
"""The ids where words are spelled in characters, until these are found; the pairs for each id, and
the power with which they grow with the ids, until they are listed."""
_LIKELIHOOD_FIRST, _LIKELIHOOD_FIRST_SHARE = 4_000, 0.35
"""So many first merges take this share of the time: they are of the rarest symbols."""
_LIKELIHOOD_MERGES, _LIKELIHOOD_POWER = 10_000, 0.88
"""The merges around which one takes the time above, and the power of their number with which the
time of all grows."""

_MEMORY_SYMBOLS = 2e6
"""The symbols, or slots, at which costs are usual. With more of them more miss the caches."""
_POSITION_GROWTH, _HASHED_GROWTH = 0.3, 0.33
"""The powers with which the costs of a position and of a hashed slot grow with their number."""
_TABLE_GROWTH = 0.6
"""The power with which the cost of a position in a table grows with the ids."""
_BYTES = 256
_SLOTS_PER_CELL = 4
"""A table has at most one cell for so many slots: see `native/learn/merge_table.hpp`."""

_USUAL_LISTS = ((1, 1.0), (100, 0.8), (2_000, 0.45), (40_000, 0.25), (80_000, 0.22))
"""The merges at which pairs are usually listed, and the slots as shares of all, for when the
counts are not known yet."""
_FLOOR_DIVISOR, _SLOW_FLOOR = 32, 64
"""How the learner's floor falls: see `native/learn/count_queue.hpp`."""
_LISTED_VISITED, _LISTED_PAIR = 1.4, 1.2
"""The positions of the listed pairs: for each position that merges visit until the next list, and
for each pair."""
_PAIRS, _PAIRS_SLOWLY = 1.5, 4.0
"""The pairs of a list for each merge until the next one: where the floor falls by the divisor, and
where it falls slowly."""
_LEAST_PAIRS = 1_000
_MEASURED_SHARE = 0.04
"""Merges are measured when they have taken this share of the time, so that much is measured at
once."""

_POSITIONS = (
    0.0126, 0.0172, 0.0337, 0.0321, 0.0659, 0.0655, 0.0714, 0.0896, 0.0944, 0.099, 0.0898, 0.0751,
    0.0589, 0.0504, 0.0448, 0.0391, 0.0364,
)  # fmt: skip
"""The positions that merges 2^k to 2^(k+1) visit, as shares of the symbols."""
_NEIGHBOURS = (
    0.00002, 0.00005, 0.00009, 0.00022, 0.00048, 0.00092, 0.0019, 0.00338, 0.00672, 0.01162,
    0.01804, 0.02359, 0.02637, 0.02823, 0.02759, 0.02539, 0.02277,
)  # fmt: skip
"""The same of neighbours."""
_SHARES_FALL = 0.9
"""What follows the last of them falls by this factor in each doubling."""
_SLOPES = (
    0.8, 0.6, 0.65, 0.55, 0.55, 0.75, 0.85, 0.95, 1.05, 1.15, 1.2, 1.35, 1.45, 1.5, 1.55, 1.55, 1.6,
)  # fmt: skip
"""The powers of a merge's number with which the best pairs' counts fall in each doubling."""
_LEAST_SLOPE = 0.2
_FADING = 0.6
"""What a corpus does differently is expected of each further doubling by this factor less."""
_TRUST = 0.1
_SLOPE_TRUST = 2.0
"""How much must be seen of a corpus to be believed half: a share of what all merges do, and powers
of 2 of the counts."""
_UNSURE = 0.4
"""A list is expected in part if it is due this near to the last merge, in doublings."""


class LearnerState(NamedTuple):
    """What a native learner has done, as its `state` is.

    Attributes:
        positions: The positions that merges visited.
        neighbours: The pairs of neighbours that merges changed.
        lists: How often all pairs were listed.
        slots: The slots of words that the last list read.
        pairs: The pairs of the last list.
        listed: The positions of these pairs.
        floor: Every pair that counts as much is listed.
    """

    positions: int = 0
    neighbours: int = 0
    lists: int = 0
    slots: int = 0
    pairs: int = 0
    listed: int = 0
    floor: int = 0


class LearningWork:
    """The work of one training: what is done, and what is expected. Threads may share it.

    The symbols and merges are estimates until `spelled` is called.
    """

    def __init__(
        self,
        symbols: int,
        merges: int,
        min_frequency: int = 0,
        *,
        merged: int = 0,
        in_characters: bool = False,
        by_likelihood: bool = False,
    ) -> None:
        self._asked = merges
        self._least = max(1, min_frequency)
        self._by_likelihood = by_likelihood
        self._merged = merged
        self._ids = (_USUAL_CHARACTERS if in_characters else _BYTES) + merged
        costs = dict(_COSTS)
        if in_characters or merged:
            costs[Kind.SPELLING] = _Cost(_SPELLING_CHARACTERS, 0.0, _SPELLING_UNSURE, 0.1)
        if by_likelihood:
            for kind in (Kind.LAYING_OUT, Kind.MERGE):
                costs[kind] = costs[kind]._replace(memory=1.0, own=_LIKELIHOOD_UNSURE)
        self._usual = [costs[kind].usual for kind in Kind]
        self._varies = [costs[kind].varies for kind in Kind]
        memory = [_MEMORY * costs[kind].memory for kind in Kind]
        own = [costs[kind].own for kind in Kind]
        self._costs = MeasuredCosts([[_MACHINE] * len(Kind), memory], own)
        self._is_spelled = self._is_laid_out = False
        self._seconds = self._last_step = 0.0
        self._unmeasured = _nothing()
        self._set_symbols(symbols)
        self._positions_listed = 0
        self._merges, self._counts, self._positions, self._neighbours = [0], [0], [0], [0]
        self._state = LearnerState()
        self._lock = threading.Lock()

    def spelled(self, symbols: int, merges: int, ids: int, seconds: float) -> None:
        """Note that the symbols of the words are found."""
        with self._lock:
            self._set_symbols(symbols)
            self._asked, self._ids = merges, ids
            self._is_spelled = True
            self._measure(self._beginning(Kind.SPELLING), seconds)

    def laid_out(self, state: LearnerState, seconds: float) -> None:
        """Note that the learner has the words."""
        with self._lock:
            self._is_laid_out = True
            self._state = state
            self._measure(self._beginning(Kind.LAYING_OUT), seconds)

    def add(self, merges: int, count: int, state: LearnerState, seconds: float) -> None:
        """Note what is done after some merges. Cost: some microseconds."""
        with self._lock:
            before = self._state
            usual = self._merging(
                state.positions - before.positions,
                state.neighbours - before.neighbours,
                self._merges[-1],
                merges,
            )
            if state.lists > before.lists and not self._by_likelihood:
                self._measure(self._unmeasured, self._last_step)
                lists = state.lists - before.lists
                ids = self._ids + self._merges[-1]
                usual += lists * self._list(state.slots, state.pairs, state.listed, ids)
                self._slots = state.slots
                self._positions_listed = before.positions
                self._measure(usual, seconds)
            else:
                self._unmeasured += usual
                if seconds - self._seconds >= _MEASURED_SHARE * seconds:
                    self._measure(self._unmeasured, seconds)
            self._last_step = seconds
            self._state = state
            self._merges.append(merges)
            self._counts.append(count)
            self._positions.append(state.positions)
            self._neighbours.append(state.neighbours)

    def seconds_left(self) -> float:
        """Return the seconds that are expected after what was noted last. Cost: about 0.3 ms."""
        with self._lock:
            left = _nothing()
            if not self._is_spelled:
                left += self._beginning(Kind.SPELLING)
            if not self._is_laid_out:
                left += self._beginning(Kind.LAYING_OUT)
            merges, last = self._merges[-1], self._asked
            if self._by_likelihood:
                left += self._merging(0, 0, merges, last)
            else:
                last = self._last_merge()
                positions = self._left(_POSITIONS, self._positions, last)
                neighbours = self._left(_NEIGHBOURS, self._neighbours, last)
                left += self._merging(positions, neighbours, merges, last)
                left += self._lists_left(last)
            left[Kind.ENTRY] += self._usual[Kind.ENTRY] * 1e-9 * last
            return self._costs.seconds(left)

    def _set_symbols(self, symbols: int) -> None:
        # So many symbols had the words before the first merge of all.
        self._symbols = symbols / max(0.1, 1 - _until(_POSITIONS, self._merged))
        self._slots = symbols
        self._position = self._usual[Kind.POSITION] * _grown(self._symbols, _POSITION_GROWTH)

    def _measure(self, usual: Seconds, seconds: float) -> None:
        """Note how long work took that has ended now."""
        self._costs.measured(usual, seconds - self._seconds, self._varies)
        self._seconds = self._last_step = seconds
        self._unmeasured = _nothing()

    def _beginning(self, kind: Kind) -> Seconds:
        usual = _nothing()
        cost = self._usual[kind]
        if self._by_likelihood and kind == Kind.LAYING_OUT:
            cost = _LIKELIHOOD_LAYING_OUT + _LIKELIHOOD_LAYING_OUT_PAIR * self._pairs()
        usual[kind] = cost * 1e-9 * self._slots
        return usual

    def _pairs(self) -> float:
        """Return the number of pairs that the likelihood chooses from."""
        expected = _LIKELIHOOD_PAIRS * math.pow(self._ids, _LIKELIHOOD_PAIRS_GROWTH)
        return self._state.pairs or expected

    def _merging(self, positions: float, neighbours: float, merges: int, last: int) -> Seconds:
        """Return the usual time of the merges after `merges`, until `last`."""
        usual = _nothing()
        if self._by_likelihood:
            merge = _LIKELIHOOD_MERGE + _LIKELIHOOD_MERGE_PAIR * self._pairs()
            usual[Kind.MERGE] = merge * (_by_likelihood(last) - _by_likelihood(merges))
        else:
            usual[Kind.POSITION] = self._position * positions
            usual[Kind.NEIGHBOUR] = self._usual[Kind.NEIGHBOUR] * neighbours
            usual[Kind.MERGE] = self._usual[Kind.MERGE] * (last - merges)
        return usual * 1e-9

    def _list(self, slots: float, pairs: float, listed: float, ids: int) -> Seconds:
        """Return the usual time of a list of pairs."""
        usual = _nothing()
        if self._in_table(slots, ids):
            usual[Kind.TABLE_SLOT] = slots
            usual[Kind.TABLE_POSITION] = listed * math.pow(max(1.0, ids / _BYTES), _TABLE_GROWTH)
        else:
            usual[Kind.HASHED_SLOT] = slots * _grown(slots, _HASHED_GROWTH)
            usual[Kind.HASHED_POSITION] = listed * math.sqrt(pairs)
        return usual * self._usual * 1e-9

    def _in_table(self, slots: float, ids: int) -> bool:
        return ids * ids <= slots / _SLOTS_PER_CELL

    def _half(self) -> int:
        """Return the index of the last moment with at most half of the merges of now."""
        half = (self._merges[-1] + self._merged) / 2 - self._merged
        return max(0, bisect_right(self._merges, half) - 1)

    def _last_merge(self) -> int:
        """Return the number of merges that are expected."""
        merges = self._merges[-1]
        if not merges:
            return self._asked
        return max(merges, min(self._asked, int(self._merge_of(self._least))))

    def _merge_of(self, count: int) -> float:
        """Return the number of the first merge that is expected to count less."""
        half, now = self._half(), self._merges[-1] + self._merged
        usual, found = _SLOPE_TRUST, _SLOPE_TRUST
        # Half a unit more, since small counts fall in steps.
        if self._merges[half]:
            usual += _until(_SLOPES, now) - _until(_SLOPES, self._merges[half] + self._merged)
            found += math.log2((self._counts[half] + 0.5) / (self._counts[-1] + 0.5))
        left = math.log2((self._counts[-1] + 0.5) / count)
        power, different = math.log2(now), found / usual - 1
        while left > 0 and power < 64:
            slope = _SLOPES[min(int(power), len(_SLOPES) - 1)] * (1 + different)
            step = min(1.0, left / max(_LEAST_SLOPE, slope))
            power += step
            left -= step * max(_LEAST_SLOPE, slope)
            different *= _FADING
        return math.pow(2.0, power) - self._merged

    def _left(self, shares: tuple[float, ...], amounts: list[int], last: float) -> float:
        """Return how much is expected from now until a merge."""
        half, here, end = self._half(), self._merges[-1] + self._merged, last + self._merged
        usual = _until(shares, here) - _until(shares, self._merges[half] + self._merged)
        found = (amounts[-1] - amounts[half]) / max(1.0, self._symbols)
        trust = _TRUST * sum(shares)
        different = (found + trust) / (usual + trust) - 1
        left, start = 0.0, float(here)
        while start < end:
            after = min(max(2.0 * start, 2.0), end)
            left += (1 + different) * (_until(shares, after) - _until(shares, start))
            different *= _FADING
            start = after
        return self._symbols * left

    def _lists_left(self, last: int) -> Seconds:
        """Return the usual time of the lists that are expected until the last merge."""
        if self._state.lists == 0:
            return self._usual_lists(last)
        usual, floor = _nothing(), self._state.floor
        at = float(max(1, self._merges[-1]))
        while floor > self._least:
            at = max(at, self._merge_of(floor))
            expected = _expected(at, last)
            if not expected:
                break
            before = self._left(_POSITIONS, self._positions, at)
            gone = self._positions[-1] - self._positions_listed + before
            slots = max(0.05 * self._slots, self._slots - gone)
            highest = floor - 1
            slow = highest < _SLOW_FLOOR
            floor = max(self._least, highest // 2 + 1 if slow else highest // _FLOOR_DIVISOR)
            until = max(at, self._merge_of(floor))
            visited = self._left(_POSITIONS, self._positions, until) - before
            pairs = (until - at) * (_PAIRS_SLOWLY if slow else _PAIRS)
            usual += expected * self._expected_list(slots, at, pairs, visited)
        return usual

    def _usual_lists(self, last: int) -> Seconds:
        """Return the usual time of all lists, as long as no counts are known."""
        usual = _nothing()
        ends = [at for at, _ in _USUAL_LISTS[1:]] + [4 * _USUAL_LISTS[-1][0]]
        for (at, share), until in zip(_USUAL_LISTS, ends, strict=True):
            if expected := _expected(at, last):
                visited = self._symbols * (_until(_POSITIONS, until) - _until(_POSITIONS, at))
                pairs = (until - at) * _PAIRS
                one = self._expected_list(share * self._slots, at, pairs, visited)
                usual += expected * one
        return usual

    def _expected_list(self, slots: float, at: float, pairs: float, visited: float) -> Seconds:
        """Return the usual time of a list to come."""
        pairs = min(max(_LEAST_PAIRS, pairs), slots / 2)
        listed = min(slots, _LISTED_VISITED * visited + _LISTED_PAIR * pairs)
        return self._list(slots, pairs, listed, self._ids + int(at))


def _nothing() -> Seconds:
    return np.zeros(len(Kind))


def _grown(number: float, power: float) -> float:
    """Return by how much a step costs more among so many symbols or slots."""
    return math.pow(max(0.5, number / _MEMORY_SYMBOLS), power)


def _by_likelihood(merges: int) -> float:
    """Return how many usual merges take as long as the first ones do."""
    power, first = _LIKELIHOOD_POWER, _LIKELIHOOD_FIRST
    later = math.pow(max(merges, first), power) - math.pow(first, power)
    usual = power * math.pow(_LIKELIHOOD_MERGES, power - 1)
    return _LIKELIHOOD_FIRST_SHARE * min(merges, first) + later / usual


def _expected(at: float, last: int) -> float:
    """Return how much a list is to be expected that is due near the last merge, from 0 to 1."""
    near = 0.5 + math.log2(max(1, last) / at) / _UNSURE
    return min(1.0, max(0.0, near))


def _until(shares: tuple[float, ...], merges: float) -> float:
    """Return the sum of shares up to a merge, even in its logarithm between powers of 2."""
    if merges <= 1:
        return 0.0
    power = math.log2(merges)
    whole = min(int(power), len(shares))
    if whole < len(shares):
        return sum(shares[:whole]) + shares[whole] * (power - whole)
    more = (
        shares[-1] * _SHARES_FALL * (1 - math.pow(_SHARES_FALL, power - whole)) / (1 - _SHARES_FALL)
    )
    return sum(shares) + more

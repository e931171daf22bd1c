"""An estimate of the work of learning merges, for the time left.

The number of merges is no measure of it: the first hundred merges of a training may take as long as
the last ten thousand. Work has four parts: words are spelled and laid out; now and then all pairs
are listed anew; merges change positions and neighbours; and every merge becomes a token in the end.
The learner counts what it has done. What is left is extrapolated:

- The share of all symbols that merges 2^k to 2^(k+1) visit differs little between corpora. What
  this corpus did differently in the last doubling is expected of the next ones too, less and less.
- The best pairs' counts fall like a power of the merge's number. This tells when the next list of
  pairs is due, and whether pairs run out before the vocabulary is full.

WordPiece's likelihood merges rare pairs first and lists all pairs at the beginning; its merges take
about the same time each.

Costs are nanoseconds as measured on one machine; only their ratios matter.
`benchmarks/time_left.py` measures how good the estimate is.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from typing import NamedTuple

_SPELLING = 16.0
"""The cost of a symbol before the first list of pairs."""
_POSITION, _POSITION_GROWTH = 35.0, 0.25
"""The cost of a position that a merge visits, and the power with which it grows with the symbols:
more of them miss the caches."""
_NEIGHBOUR = 260.0
"""The cost of a pair of neighbours that a merge changes."""
_MERGE = 2_000.0
_ENTRY = 2_200.0
"""The costs of a merge: while it is learned, and when it becomes a token in the end."""
_MANY = 2e6
"""The number of symbols at which the costs are as they are here."""
_LIKELIHOOD_SPELLING, _LIKELIHOOD_MERGE = 150.0, 11_000.0
"""The same for the likelihood: of a symbol, all pairs listed, and of a merge in all."""

_FIRST_LIST = 10.0
"""The cost of a slot when the pairs of single symbols are listed."""
_SECOND_LIST, _SECOND_LIST_GROWTH = 12.0, 0.2
_THIRD_LIST, _THIRD_LIST_PAIR, _THIRD_LIST_GROWTH = 20.0, 0.14, 0.12
"""The cost of a slot in lists to come: of the third one, for each pair of the first list too."""
_LATER_LIST, _LEAST_LATER_LIST = 0.8, 48.0
"""The cost of a slot in later lists, as a share of the third one's."""
_USUAL_PAIRS = 200
"""The pairs of the first list, until it is made."""
_SECOND_SLOTS, _THIRD_SLOTS = 0.8, 0.45
"""The slots of the second and the third list, as shares of the first one's, before any merge."""
_FLOOR_DIVISOR, _SLOW_FLOOR = 32, 64
"""How the learner's floor falls: see `native/learn/count_queue.hpp`."""

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
    """The work of one training: done, and expected. Threads may share it.

    Args:
        symbols: The number of symbols of the words.
        merges: The number of merges that are asked for.
        min_frequency: The least count of a pair that is merged.
        merged: The number of merges that made the symbols: those of a tokenizer that is continued.
        by_likelihood: Whether the likelihood chooses the pairs.
    """

    def __init__(
        self,
        symbols: int,
        merges: int,
        min_frequency: int = 0,
        *,
        merged: int = 0,
        by_likelihood: bool = False,
    ) -> None:
        self._asked = merges
        self._least = max(1, min_frequency)
        self._by_likelihood = by_likelihood
        self._merged = merged
        # So many symbols had the words before the first merge of all.
        self._symbols = symbols / max(0.1, 1 - _until(_POSITIONS, merged))
        self._slots = symbols
        self._position = _POSITION * self._grown(_POSITION_GROWTH)
        self._spelling = (_LIKELIHOOD_SPELLING if by_likelihood else _SPELLING) * symbols
        self._listing = 0.0
        self._first_pairs = _USUAL_PAIRS
        self._positions_listed = 0
        self._merges, self._counts, self._positions, self._neighbours = [0], [0], [0], [0]
        self._state = LearnerState()
        self._lock = threading.Lock()

    def add(self, merges: int, count: int, state: LearnerState) -> None:
        """Note what is done after some merges. Cost: a microsecond.

        Args:
            merges: The number of all merges so far, more than before.
            count: The count of the last one.
            state: What the learner has done.
        """
        with self._lock:
            lists = state.lists - self._state.lists
            if lists > 0:
                self._listing += _cost_of_list(state) * lists
                self._slots = state.slots
                self._positions_listed = self._positions[-1]
                if state.lists == 1:
                    self._first_pairs = state.pairs
            self._state = state
            self._merges.append(merges)
            self._counts.append(count)
            self._positions.append(state.positions)
            self._neighbours.append(state.neighbours)

    def amounts(self) -> tuple[float, float]:
        """Return the work that is done, and all work. Cost: about 0.2 ms."""
        with self._lock:
            merges = self._merges[-1]
            if self._by_likelihood:
                done = self._spelling + _LIKELIHOOD_MERGE * merges
                left = _LIKELIHOOD_MERGE * (self._asked - merges)
                return done, done + left + _ENTRY * self._asked
            done = (
                self._spelling
                + self._listing
                + self._merging(self._positions[-1], self._neighbours[-1], merges)
            )
            last = self._last_merge()
            left = self._merging(
                self._left(_POSITIONS, self._positions, last),
                self._left(_NEIGHBOURS, self._neighbours, last),
                last - merges,
            )
            return done, done + left + self._listing_left(last) + _ENTRY * last

    def _merging(self, positions: float, neighbours: float, merges: float) -> float:
        return self._position * positions + _NEIGHBOUR * neighbours + _MERGE * merges

    def _grown(self, power: float) -> float:
        """Return by how much a step costs more with these symbols."""
        return math.pow(max(0.5, self._symbols / _MANY), power)

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
        """Return how much is expected from now until a merge.

        Args:
            shares: What merges 2^k to 2^(k+1) usually add, as shares of the symbols.
            amounts: What was added until each moment.
            last: The number of that merge.
        """
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

    def _listing_left(self, last: int) -> float:
        """Return the work of the lists that are expected until the last merge."""
        lists, floor = self._state.lists, self._state.floor
        if lists == 0:
            second = _SECOND_SLOTS * self._cost_of_slot(1)
            third = _THIRD_SLOTS * self._cost_of_slot(2)
            return (_FIRST_LIST + second + third) * self._slots
        work, at = 0.0, float(max(1, self._merges[-1]))
        while floor > self._least:
            at = max(at, self._merge_of(floor))
            near = 0.5 + math.log2(last / at) / _UNSURE
            if near <= 0:
                break
            gone = self._positions[-1] - self._positions_listed
            gone += int(self._left(_POSITIONS, self._positions, at))
            slots = max(0.05 * self._slots, self._slots - gone)
            work += min(1.0, near) * self._cost_of_slot(lists) * slots
            highest = floor - 1
            slow = highest < _SLOW_FLOOR
            floor = max(self._least, highest // 2 + 1 if slow else highest // _FLOOR_DIVISOR)
            lists += 1
        return work

    def _cost_of_slot(self, lists: int) -> float:
        """Return the cost of a slot in the list that follows so many lists."""
        if lists == 1:
            return _SECOND_LIST * self._grown(_SECOND_LIST_GROWTH)
        third = _THIRD_LIST + _THIRD_LIST_PAIR * self._first_pairs
        third *= self._grown(_THIRD_LIST_GROWTH)
        return third if lists == 2 else max(_LEAST_LATER_LIST, _LATER_LIST * third)


def _cost_of_list(state: LearnerState) -> float:
    """Return the cost of the last list: pairs that miss the caches cost more."""
    root = math.sqrt(state.pairs)
    if state.lists == 1:
        return _FIRST_LIST * state.slots
    if state.lists == 2:
        return (8 + 0.17 * root) * state.slots
    slot = 20 + 30 * min(1.0, max(0.0, math.log10(max(1, state.slots) / 1e6)))
    return slot * state.slots + min(200.0, 0.33 * root) * state.listed


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

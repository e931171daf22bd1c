"""Which of the best pairs may be merged at once, determined by their counts alone.

`docs/algorithm.md` ("A plain batch") has the four rules that end a batch, and proves them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from bpe_beam.training.recipe import TieBreak

_Pair = tuple[int, int]


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

    Args:
        lefts: The pairs' left ids, the best first, ties in the rule's order.
        rights: Their right ids.
        counts: How often each occurs, among all words.
        tie_break: The rule; not `first_seen`.
        joined: Returns the token of a pair.
        known: The tokens of the vocabulary; each must have one id.
        complete: Whether there are no other pairs; else others may be as frequent as the last one.

    Returns:
        At least 1 if there is a pair.
    """
    assert tie_break != "first_seen"
    pairs: list[_Pair] = list(zip(lefts.tolist(), rights.tolist(), strict=True))
    by_level = tie_break == "greatest_bytes"
    taken_lefts: set[int] = set()
    taken_rights: set[int] = set()
    made: set[bytes] = set()

    def conflicts(pair: _Pair) -> bool:
        return pair[0] in taken_rights or pair[1] in taken_lefts

    taken = 0
    for begin, end in _levels(counts):
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


def _levels(counts: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield where runs of equal counts begin and end."""
    changes = (np.flatnonzero(np.diff(counts)) + 1).tolist()
    return pairwise([0, *changes, len(counts)])

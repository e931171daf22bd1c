"""Which of the best pairs may be merged at once, determined by their counts alone.

Let p1, p2, ... be the pairs there are, the best first: by falling count, then by the tie rule. A
batch is a beginning p1 .. pk of that list such that learning one merge at a time takes just these
pairs, in this order. Two pairs *conflict* if the left of one is the right of the other: only then
can their occurrences share a symbol. The batch ends

1. before a pair that conflicts with a taken one,
2. after a pair of equal symbols,
3. before a pair whose joined token is known, to the vocabulary or as that of a taken pair; if p1 is
   such a pair, after it,
4. under `greatest_bytes`, before p(i+1) while any pair as frequent as it, p(i+1) or a later one,
   conflicts with a taken pair. If the list is cut off in the middle of a level of equal counts,
   that is not known of this level: of it p1 may be taken, no other.

**Taken pairs keep their counts.** A merge takes away occurrences of pairs that share a symbol with
it, and those it changes otherwise have its new token. By 1 no taken pair does either, by 3 no new
token is a part of one. Pairs that are not taken only lose.

**No pair with a new token comes first.** Let p1 .. pi be merged and (X, Y) have a new token. By 3
each new token is made of one pair only, so every occurrence of (X, Y) is at a boundary of one and
the same former pair (u, v), u the last symbol of X and v the first of Y, and count(X, Y) <= N(u,
v), the count that the list has.

- If (u, v) is a taken pair of two symbols: where it occurred, it was merged, and by 1 it occurred
  at all its positions until then. No boundary is left; where `max_token_length` forbade to join u
  and v, it forbids X and Y. So (X, Y) counts nothing. If it is still to be taken, X or Y was made
  of a pair that conflicts with it, against 1.
- It is no pair of equal symbols, by 2.
- If (u, v) is not taken, it is not before p(i+1), so N(u, v) <= count of p(i+1) = (l, r). Let them
  be equal: otherwise (X, Y) counts less. Under `lowest_id`, (u, v) has u > l, or u = l and v > r,
  or is p(i+1) itself. A new token's id is above all others. So if X is new, X > l. Else X = u, and
  Y is new: u > l, or u = l and Y > r. In each case (X, Y) comes after p(i+1). Pairs that are
  missing at the end of the list are later than p(i+1) too. Under `greatest_bytes` the longer string
  may be the greater; but X new means u is the right of a taken pair, Y new that v is the left of
  one. So (u, v) conflicts with it, against 4.

So p(i+1) is the best pair after p1 .. pi, counts what it counted, and p1 is always right.

**No rule can be left out.** `abd` under `lowest_id` merges (a, b) and (ab, d), never (b, d): 1.
`aaa` seven times and `bbc`: after (a, a) the pair (aa, a) counts 7, and (b, b) only 1: 2. `aece`
twice, where `ae` is a special token of a low id: after (a, e), (ae, c) comes before (c, e). And
three times `x ab` and `x a b`, five times `a b`, four times `y z`, with the token `ab` in the
words before: after (a, b) the pair (x, ab) counts 6, more than (y, z): 3. `x a bc` and `x ab c`
three times each, `a bc` and `ab c` five times, `y z` four times: (a, bc) and (ab, c) make the same
token, (x, abc) counts 6: 3. `facc` under `greatest_bytes`: after (f, a) comes (fa, c), not (c, c),
since (a, c) is as frequent: 4. `daba` with a list of two pairs, (d, a) and (b, a), of the first
level: the third, (a, b), is (da, b) when (d, a) is merged, and comes before (b, a): 4.
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

    Merges whose joined token is known come by themselves, so a batch may be applied by rank. Takes
    about a microsecond a pair.

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

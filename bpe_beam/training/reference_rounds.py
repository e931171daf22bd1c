"""Learning in rounds over cold cuts, slow and readable, and why that is exact.

What is a list of words here stands on workers there, and only segments come to one place. At the
start of a round each word is a sequence of symbols: characters, or tokens made before. Let N(l, r)
be how often l and r stand side by side, words weighted by their counts, overlapping pairs each
counted, places where `max_token_length` forbids joining not. A boundary between two symbols is
*cold* if N of its pair is below a threshold T, else *hot*. Words are cut at their cold boundaries,
equal segments added up, and merges learned from the segments until the best pair counts less than
T, or a merge has made a token that the vocabulary held before. These are the merges that learning
from the words themselves takes next. T is at least 1 and `min_frequency`, at most the best pair's
count, so a round has at least one merge.

**Bound.** Until that last merge, every token that a merge of this round made is made of one pair
only, so of one sequence of symbols. So where a later pair (X, Y) stands, the boundary within it
stood between the last symbol of X and the first of Y, and other places of the pair have other
boundaries. A place that is too long for X and Y to join was perhaps not too long for the two
symbols, never the other way round. Hence count(X, Y) <= N(last symbol of X, first symbol of Y).

**Nothing happens at cold boundaries.** There every pair counts less than T, by the bound, and no
merge of the round does. So none joins across a cut, and each does to a word what it does to its
segments. Neither is the order of places lost: in a run of equal tokens, where `a a a` becomes
`aa a`, all boundaries had the same pair, and the run is cut everywhere or nowhere.

**All else is counted whole.** All places of a pair (X, Y) had the same pair of symbols at their
boundary. If it was hot, all these places are within segments, and the pair counts there what it
counts in the words; if it was cold, the pair counts nothing there, and less than T in the words.
So as long as a pair counts T or more, the best pair of the segments is that of the words, and so
are those that tie with it. `lowest_id` and `greatest_bytes` compare ids and strings, which are the
same here and there. `first_seen` compares places in the words, which the segments do not know.

**Known tokens.** The merge that makes one is itself exact: the bound held before it. After it the
token can stand at boundaries of several pairs, each of them cold, which count T together; so the
round ends, and the next begins from its symbols as they are. A word's symbols may then be made in
any way: only merges of the round itself must be unique. Example: `a##a##ab` and twice
`a##a##a##b##ab` with the prefix `##`, T = 2: (##a, ##b) makes the `##ab` that there was.

**Applying a round.** For its merges the pair of lowest rank first, the leftmost of equals, gives
what one merge after the other gives: a merge makes a new token, whose pairs have higher ranks. Not
so where the token was known, since an earlier merge of the round may be of pairs with it: that
merge, always the last, is applied after all others. Example: `a_ _ b _ a _ _ b`, where (_, b),
(a_, _b) and (a, _) are learned, the last of which makes `a_`, but no new place of (a_, _b).

**How many characters a token covers** may depend on the place, where symbols are decorated and the
text holds the decoration itself (`##` + `b` is the `##b` of two characters, or of one). Symbols
carry their lengths here. Where they do not, every place of a symbol must have the same.

**By likelihood** the score count / (frequency x frequency) of later pairs has no such bound, but a
pair that counts less than `min_frequency` is passed over. So T = `min_frequency` is exact, if
segments of one symbol are kept too: each symbol is in one segment, and its frequency the same. The
rare pairs may score higher than all others; they are passed over here and there. Words of one
symbol count for the frequencies of all rounds, and must not be dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from bpe_beam.training.reference import (
    CountedWord,
    Pair,
    Rules,
    Symbol,
    best_pair,
    count_pairs,
    frequencies,
    merge_pair,
)


def learn_in_rounds(
    counted: Iterable[CountedWord],
    ids: dict[str, int],
    rules: Rules,
    threshold: Callable[[int], int],
) -> list[list[Pair]]:
    """Learns what `reference.learn` learns; adds the joined tokens to `ids`.

    Args:
        counted: The words.
        ids: The vocabulary; there must be room in it.
        rules: All tie rules but `first_seen`.
        threshold: From the count of the best pair to that below which a boundary is cold. What is
            below `min_frequency`, or above the best pair's count, is put right. By likelihood it
            is not asked: no pair but a rare one is passed over.

    Returns:
        The merges of each round. One whose joined token was known is the last of its round.
    """
    counted = list(counted)
    rounds: list[list[Pair]] = []
    least = max(1, rules.min_frequency)
    while len(ids) < rules.vocab_size:
        counts = count_pairs(counted, rules.may_join)
        best = max(counts.values(), default=0)
        if best < least:
            break
        floor = least if rules.likelihood else min(max(least, threshold(best)), best)
        hot = {pair for pair, count in counts.items() if count >= floor}
        segments = cut(counted, hot, singles=rules.likelihood)
        merges = _learn_until_known(segments, ids, replace(rules, min_frequency=floor))
        if not merges:  # by likelihood, when all are rare
            break
        for pair in merges:
            counted = [(merge_pair(symbols, pair, rules), count) for symbols, count in counted]
        rounds.append(merges)
    return rounds


def cut(
    counted: Iterable[CountedWord], hot: Collection[Pair], *, singles: bool
) -> list[CountedWord]:
    """The words between their cold boundaries, equal ones added up.

    Segments of one symbol are kept only if asked for: they hold no pair, but count for how often
    their symbol occurs.
    """
    segments: dict[tuple[Symbol, ...], int] = {}
    for symbols, count in counted:
        for segment in _segments(symbols, hot):
            if len(segment) > (0 if singles else 1):
                segments[segment] = segments.get(segment, 0) + count
    return list(segments.items())


def _segments(symbols: Sequence[Symbol], hot: Collection[Pair]) -> list[tuple[Symbol, ...]]:
    cuts = [
        place
        for place, (left, right) in enumerate(pairwise(symbols), 1)
        if (left.text, right.text) not in hot
    ]
    bounds = pairwise([0, *cuts, len(symbols)])
    return [tuple(symbols[begin:end]) for begin, end in bounds]


def _learn_until_known(counted: list[CountedWord], ids: dict[str, int], rules: Rules) -> list[Pair]:
    """As `reference.learn`, but ends after a merge whose joined token was known."""
    merges: list[Pair] = []
    next_id = max(ids.values(), default=-1) + 1
    while len(ids) < rules.vocab_size:
        counts = count_pairs(counted, rules.may_join)
        best = best_pair(counts, frequencies(counted), ids, rules)
        if best is None:
            break
        counted = [(merge_pair(symbols, best, rules), count) for symbols, count in counted]
        merges.append(best)
        if ids.setdefault(rules.joined(*best), next_id) != next_id:
            break
        next_id += 1
    return merges

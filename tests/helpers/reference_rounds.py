"""Training in rounds over segments, slow and readable, and the proof that it is exact.

The list of words here is divided over workers in a real round, and only segments come to one
process. At the start of a round each word is a sequence of symbols: characters, or tokens made
before. Let N(l, r) be how often l and r are adjacent, words weighted by their counts; overlapping
pairs count each, positions where `max_token_length` forbids joining do not. A pair is *frequent* if
its N is at least a threshold T. A boundary between two symbols whose pair is not frequent is an
*infrequent-pair boundary*. Words are cut at these boundaries, equal segments are added up, and
merges are learned from the segments until the best pair counts less than T, or a merge has made a
token that the vocabulary had before. These are the merges that training on the words themselves
takes next. T is at least 1 and `min_frequency`, at most the best pair's count, so a round has at
least one merge.

**Bound.** Until that last merge, every token that a merge of this round made is made of one pair
only, so of one sequence of symbols. So where a later pair (X, Y) occurs, the boundary within it
was between the last symbol of X and the first of Y, and other occurrences of the pair have other
boundaries. A position that is too long for X and Y to join was perhaps not too long for the two
symbols, never the other way round. Hence count(X, Y) <= N(last symbol of X, first symbol of Y).

**Nothing happens at infrequent-pair boundaries.** There every pair counts less than T, by the
bound, and no merge of the round does. So none joins across a cut, and each does to a word what it
does to its segments. The order of joining is not lost either: in a run of equal tokens, where
`a a a` becomes `aa a`, all boundaries had the same pair, and the run is cut everywhere or nowhere.

**All other pairs are counted in full.** All occurrences of a pair (X, Y) had the same pair of
symbols at their boundary. If that pair was frequent, all occurrences are within segments, and
(X, Y) counts there what it counts in the words. If not, (X, Y) counts nothing there, and less than
T in the words. So as long as a pair counts T or more, the best pair of the segments is that of the
words, and so are those that tie with it. `lowest_id` and `greatest_bytes` compare ids and strings,
which are the same in words and segments. `first_seen` compares positions in the words, which the
segments do not have.

**Known tokens.** The merge that makes one is itself exact: the bound was true before it. After it
the token can occur at boundaries of several infrequent pairs, which count T together; so the round
ends, and the next begins from its symbols as they are. A word's symbols may then be made in any
way: only merges of the round itself must be unique. Example: `a##a##ab` and twice
`a##a##a##b##ab` with the prefix `##`, T = 2: (##a, ##b) makes the `##ab` that existed before.

**Applying a round.** For its merges the pair of lowest rank first, the leftmost of equals, gives
the same as one merge after the other: a merge makes a new token, whose pairs have higher ranks.
This is not so where the token was known, since an earlier merge of the round may be of pairs with
it: that merge, always the last, is applied after all others. Example: `a_ _ b _ a _ _ b`, where
(_, b), (a_, _b) and (a, _) are learned, the last of which makes `a_`, but no new occurrence of
(a_, _b).

**How many characters a token covers** may depend on the position, where symbols are decorated and
the text contains the decoration itself (`##` + `b` is the `##b` of two characters, or of one).
Symbols have their lengths here. Where they do not, every occurrence of a symbol must have the same.

**By likelihood** the score count / (frequency x frequency) of later pairs has no such bound, but a
pair that counts less than `min_frequency` is passed over. So T = `min_frequency` is exact, if
segments of one symbol are kept too: each symbol is in one segment, and its frequency the same. The
rare pairs may score higher than all others; they are passed over in words and segments. Words of
one symbol count for the frequencies of all rounds, and must not be dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from reference_bpe import (
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
    """Learn what `reference_bpe.learn` learns; add the joined tokens to `ids`.

    Args:
        counted: The words.
        ids: The vocabulary, with room for more entries.
        rules: The rules, with any tie rule but `first_seen`.
        threshold: Returns, from the count of the best pair, the least count of a frequent pair.
            Values below `min_frequency`, or above the best pair's count, are corrected. Not called
            for likelihood: no pair but a rare one is passed over.

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
        frequent = {pair for pair, count in counts.items() if count >= floor}
        segments = cut(counted, frequent, singles=rules.likelihood)
        merges = _learn_until_known(segments, ids, replace(rules, min_frequency=floor))
        if not merges:  # by likelihood, when all are rare
            break
        for pair in merges:
            counted = [(merge_pair(symbols, pair, rules), count) for symbols, count in counted]
        rounds.append(merges)
    return rounds


def cut(
    counted: Iterable[CountedWord], frequent: Collection[Pair], *, singles: bool
) -> list[CountedWord]:
    """Return the segments of words between infrequent-pair boundaries, equal ones added up.

    Segments of one symbol are kept only with `singles`: they have no pair, but count for how often
    their symbol occurs.
    """
    segments: dict[tuple[Symbol, ...], int] = {}
    for symbols, count in counted:
        for segment in _segments(symbols, frequent):
            if len(segment) > (0 if singles else 1):
                segments[segment] = segments.get(segment, 0) + count
    return list(segments.items())


def _segments(symbols: Sequence[Symbol], frequent: Collection[Pair]) -> list[tuple[Symbol, ...]]:
    cuts = [
        position
        for position, (left, right) in enumerate(pairwise(symbols), 1)
        if (left.text, right.text) not in frequent
    ]
    bounds = pairwise([0, *cuts, len(symbols)])
    return [tuple(symbols[begin:end]) for begin, end in bounds]


def _learn_until_known(counted: list[CountedWord], ids: dict[str, int], rules: Rules) -> list[Pair]:
    """Learn as `reference_bpe.learn`, but end after a merge whose joined token was known."""
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

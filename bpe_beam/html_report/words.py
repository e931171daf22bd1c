"""The words of counts that the page lists: the most costly ones, and those encoded differently.

A word costs the tokens beyond one for each occurrence. Each tokenizer encodes each word once.
Memory: one part of the counts for each thread, and the words that are kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.evaluation.differences import (
    ComparedWords,
    Pair,
    WordComparison,
    WordDifferences,
    encoded_by_all,
)
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder

MOST_CHARACTERS = 100
"""The most characters of a word that the page has: a word may have megabytes."""
MOST_TOKENS = 50
"""The most tokens of a word that the page has."""


class CostlyWord(NamedTuple):
    """A word of several tokens; the first are those that cost most.

    Attributes:
        cost: The number of tokens beyond one for each occurrence, negative.
        text: The first characters of the word, see `shown_text`.
        tokens: The positions of its first tokens, at most MOST_TOKENS.
    """

    cost: int
    text: str
    occurrences: int
    tokens: tuple[int, ...]

    @property
    def all_tokens(self) -> int:
        """The number of all its tokens."""
        return 1 - self.cost // self.occurrences

    @property
    def is_whole(self) -> bool:
        """Whether the text and the tokens are all that it has."""
        return len(self.text) <= MOST_CHARACTERS and len(self.tokens) == self.all_tokens


def shown_text(text: str) -> str:
    """Return the first MOST_CHARACTERS of a word, with an ellipsis if it has more."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


class WordLists(NamedTuple):
    """The encoder of each tokenizer, its most costly words, and the differences of each pair."""

    encoders: list[WordEncoder]
    costly: list[list[CostlyWord]]
    differences: list[WordDifferences]


_Lists: TypeAlias = tuple[list[list[CostlyWord]], list[ComparedWords]]
"""The most costly words of each tokenizer, and the sums of each pair, of some words."""


def word_lists(
    words: CountedParts,
    vocabularies: Sequence[Vocabulary],
    names: Sequence[str],
    most: int,
    *,
    pairs: Sequence[Pair] = (),
    on_part: Callable[[], None] = lambda: None,
) -> WordLists:
    """Return the most costly words of each tokenizer, and those that two encode differently."""
    encoders = [words.encoder(one.tokenizer) for one in vocabularies]
    comparisons = [
        WordComparison(pair, (encoders[0], encoder), most)
        for pair, encoder in zip(pairs, encoders[1:], strict=False)
    ]

    def added(lists: _Lists, more: _Lists) -> _Lists:
        costly = [heapq.nsmallest(most, [*a, *b]) for a, b in zip(lists[0], more[0], strict=True)]
        return costly, [a.plus(b, most) for a, b in zip(lists[1], more[1], strict=True)]

    def of_part(read: Callable[[], pa.Table]) -> _Lists:
        lists = nothing
        for own, counts, ids in encoded_by_all(names, encoders, read()):
            costly = [
                [*_costs(vocabulary, encoder.texts_of(own), counts, encoded, most)]
                for vocabulary, encoder, encoded in zip(vocabularies, encoders, ids, strict=True)
            ]
            compared = [
                comparison.of_batch(own, counts, ids[0], encoded)
                for comparison, encoded in zip(comparisons, ids[1:], strict=False)
            ]
            lists = added(lists, (costly, compared))
        on_part()
        return lists

    nothing: _Lists = [[] for _ in vocabularies], [ComparedWords() for _ in comparisons]
    lists = nothing
    with ThreadPoolExecutor(words.workers) as pool:
        for more in pool.map(of_part, words.added_up):
            lists = added(lists, more)
    results = zip(comparisons, lists[1], strict=True)
    return WordLists(encoders, lists[0], [one.result(own) for one, own in results])


def _costs(
    vocabulary: Vocabulary,
    texts: pa.Array,
    counts: Integers,
    encoded: pa.LargeListArray,
    most: int,
) -> Iterator[CostlyWord]:
    """Yield the words of a batch that may be among those that cost most."""
    costs = counts * (np.diff(encoded.offsets.to_numpy()) - 1)
    chosen = np.flatnonzero(costs > 0)
    if len(chosen) > most:
        least = np.partition(costs[chosen], -most)[-most]
        chosen = chosen[costs[chosen] >= least]
    for at in chosen.tolist():
        ids = encoded[at].values[:MOST_TOKENS].to_numpy()
        tokens = tuple(vocabulary.positions(ids).tolist())
        yield CostlyWord(-int(costs[at]), shown_text(texts[at].as_py()), int(counts[at]), tokens)

"""The words of counts that the page lists: those that cost most, and those encoded otherwise.

The words that cost most are those whose tokens are the most, as often as they occur. Each tokenizer
encodes each word once. Memory: one part of the counts for each thread, and the words that are kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.evaluation.differences import Pair
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.evaluation.word_differences import (
    ComparedWords,
    WordComparison,
    WordDifferences,
    encoded_by_all,
)
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
        occurrences: How often it occurs.
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
    """The words of a page.

    Attributes:
        encoders: The encoders of the tokenizers.
        costly: The words that cost most in each tokenizer.
        differences: How the tokenizers of each pair encode the words.
    """

    encoders: list[WordEncoder]
    costly: list[list[CostlyWord]]
    differences: list[WordDifferences]


def word_lists(
    words: CountedParts,
    vocabularies: Sequence[Vocabulary],
    names: Sequence[str],
    most: int,
    *,
    pairs: Sequence[Pair] = (),
    on_part: Callable[[], None] = lambda: None,
) -> WordLists:
    """Return the words that cost most in each tokenizer, and those that two encode otherwise."""
    rules = words.manifest.normalizer, words.manifest.pretokenizer
    encoders = [WordEncoder(one.tokenizer, *rules) for one in vocabularies]
    comparisons = [
        WordComparison(pair, (encoders[0], encoder), most)
        for pair, encoder in zip(pairs, encoders[1:], strict=False)
    ]

    def of_part(read: Callable[[], pa.Table]) -> tuple[list[list[CostlyWord]], list[ComparedWords]]:
        table = read()
        costly: list[list[CostlyWord]] = [[] for _ in vocabularies]
        compared = [ComparedWords() for _ in comparisons]
        for own, counts, ids in encoded_by_all(names, encoders, table):
            for at, vocabulary in enumerate(vocabularies):
                new = _costs(vocabulary, encoders[at].texts_of(own), counts, ids[at], most)
                costly[at] = heapq.nsmallest(most, [*costly[at], *new])
            for at, comparison in enumerate(comparisons):
                batch = comparison.of_batch(own, counts, ids[0], ids[at + 1])
                compared[at] = compared[at].plus(batch, most)
        on_part()
        return costly, compared

    costly: list[list[CostlyWord]] = [[] for _ in vocabularies]
    compared = [ComparedWords() for _ in comparisons]
    with ThreadPoolExecutor(words.workers) as pool:
        for costly_of_part, found_of_part in pool.map(of_part, words.added_up):
            both = zip(costly, costly_of_part, strict=True)
            costly = [heapq.nsmallest(most, [*own, *new]) for own, new in both]
            compared = [
                own.plus(new, most) for own, new in zip(compared, found_of_part, strict=True)
            ]
    results = zip(comparisons, compared, strict=True)
    return WordLists(encoders, costly, [one.result(own) for one, own in results])


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

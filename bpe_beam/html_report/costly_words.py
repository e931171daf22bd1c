"""Words of counts and differences of tokenizers, as the page lists them.

A word costs the tokens beyond one for each occurrence. Each tokenizer encodes each word once.
Memory: one part of the counts for each thread, and the words that are kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.evaluation.differences import (
    ADDED_TOKEN,
    ComparedWords,
    Pair,
    PartDifference,
    WordComparison,
    WordDifferences,
    differences,
    encoded_by_all,
)
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.html_report.figures import Variables, as_text, token_texts, visible

MOST_WORDS = 100
"""The most words of a list."""
MOST_CHARACTERS = 100
"""The most characters of a word that the page has: a word may have megabytes."""
MOST_TOKENS = 50
"""The most tokens of a word that the page has."""
MOST_ADDED_TOKENS = 5
"""The most added tokens with equal settings that have a row each where they differ."""


class CostlyWord(NamedTuple):
    """A word of several tokens; the first are those that cost most.

    `cost` is the number of tokens beyond one for each occurrence, negative, and `tokens` the
    positions of its first MOST_TOKENS tokens.
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
    lists = reduce(added, words.on_threads(of_part, words.added_up), nothing)
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


# ---- differences between two tokenizers ----


def pair_differences(pair: Pair, second: int, lists: WordLists | None) -> Variables:
    """Return what differs between the first tokenizer and the one of number `second`."""
    different = differences(pair)
    return {
        "a": pair.names[0],
        "b": pair.names[1],
        "tokens": different.tokens,
        "ids": different.ids,
        "merges": different.merges,
        "parts": list(_folded(different.parts)),
        "second": second,
        "words": None if lists is None else _other_words(lists, pair, second),
    }


def _other_words(lists: WordLists, pair: Pair, second: int) -> Variables:
    """Return the words that a pair encodes differently."""
    compared = lists.differences[second - 1]
    words = pa.array([word.word for word in compared.most_frequent], pa.large_string())
    by_both = []
    for vocabulary, encoder in zip(
        pair.vocabularies, (lists.encoders[0], lists.encoders[second]), strict=True
    ):
        encoded = encoder.encode(words)
        first = (one.values[:MOST_TOKENS].to_numpy() for one in encoded)
        lengths = np.diff(encoded.offsets.to_numpy()).tolist()
        tokens = (token_texts(vocabulary, vocabulary.positions(ids)) for ids in first)
        by_both.append([*zip(tokens, lengths, strict=True)])
    return {
        "unique": compared.other_unique_words,
        "share": as_text("unknown_tokens", compared.other_words / max(compared.words, 1)),
        "rows": [
            {"text": shown_text(word.word), "count": word.count, "a": a, "b": b}
            for word, a, b in zip(compared.most_frequent, *by_both, strict=True)
        ],
    }


def _folded(parts: Sequence[PartDifference]) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield the components that differ; many added tokens with equal settings are one row.

    A row has the component, what it is in both tokenizers, and the names of the folded tokens.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        if part.part.startswith(ADDED_TOKEN):
            alike.setdefault((part.a, part.b), []).append(part.part.removeprefix(ADDED_TOKEN))
    for part in parts:
        tokens = alike.get((part.a, part.b), [])
        if not part.part.startswith(ADDED_TOKEN) or len(tokens) <= MOST_ADDED_TOKENS:
            yield visible(part.part), visible(part.a), visible(part.b), []
        elif part.part == ADDED_TOKEN + tokens[0]:
            names = [visible(token) for token in tokens]
            yield f"{len(tokens):,} added tokens", visible(part.a), visible(part.b), names

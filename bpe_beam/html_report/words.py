"""The words of counts that cost most: those whose tokens are the most, as often as they occur.

Memory: one part of the counts for each thread, and the words that are kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bpe_beam.evaluation.counted import CountedParts, encoded_words
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder


class CostlyWord(NamedTuple):
    """A word of several tokens; the first are those that cost most.

    Attributes:
        cost: The number of tokens beyond one for each occurrence, negative.
        text: The word.
        occurrences: How often it occurs.
        tokens: The positions of its tokens.
    """

    cost: int
    text: str
    occurrences: int
    tokens: tuple[int, ...]


def costly_words(
    words: CountedParts, vocabularies: Sequence[Vocabulary], most: int
) -> list[list[CostlyWord]]:
    """Return the words that cost most in each tokenizer.

    Args:
        words: The words.
        vocabularies: The tokens of the tokenizers.
        most: The most words of each tokenizer.

    Raises:
        DataError: A part of the counts is damaged.
    """
    rules = words.manifest.normalizer, words.manifest.pretokenizer
    encoders = [WordEncoder(one.tokenizer, *rules) for one in vocabularies]

    def of_part(read: Callable[[], pa.Table]) -> list[list[CostlyWord]]:
        table = read()
        both = zip(vocabularies, encoders, strict=True)
        return [heapq.nsmallest(most, _costs(one, encoder, table, most)) for one, encoder in both]

    found: list[list[CostlyWord]] = [[] for _ in vocabularies]
    with ThreadPoolExecutor(words.workers) as pool:
        for part in pool.map(of_part, words.added_up):
            for own, new in zip(found, part, strict=True):
                own[:] = heapq.nsmallest(most, [*own, *new])
    return found


def _costs(
    vocabulary: Vocabulary, encoder: WordEncoder, words: pa.Table, most: int
) -> Iterator[CostlyWord]:
    """Yield the words of a table that may be among those that cost most."""
    for texts, counts, encoded in encoded_words(words, encoder):
        costs = counts * (np.diff(encoded.offsets.to_numpy()) - 1)
        chosen = np.flatnonzero(costs > 0)
        if len(chosen) > most:
            least = np.partition(costs[chosen], -most)[-most]
            chosen = chosen[costs[chosen] >= least]
        for at in chosen.tolist():
            ids = encoded[at].values.to_numpy()
            tokens = tuple(vocabulary.positions(ids).tolist())
            yield CostlyWord(-int(costs[at]), texts[at].as_py(), int(counts[at]), tokens)

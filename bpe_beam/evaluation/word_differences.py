"""The differences between two tokenizers in the encoding of counted words.

Cost: the encoding of each unique word by both; memory for one partition of the counts and the most
frequent words for each thread.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat, starmap
from operator import add
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct

from bpe_beam.counts.word_table import weighted_total
from bpe_beam.errors import DataError
from bpe_beam.evaluation.counted import CountedParts, encoded_words
from bpe_beam.evaluation.differences import Pair, shown
from bpe_beam.evaluation.vocabulary import Flags, Integers
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.tokenizer.tokenizer import Tokenizer


class WordDifference(Struct, frozen=True):
    """A word that the tokenizers encode differently, and its tokens by both as people read them."""

    word: str
    count: int
    a: list[str]
    b: list[str]


class WordDifferences(Struct, frozen=True):
    """The encoding of the words of counts by two tokenizers.

    Words are encoded differently if their tokens differ; equal tokens with two ids are equal.

    Attributes:
        exact_a: Whether A gives these ids in the corpus too, see `WordEncoder.exact`.
        exact_b: The same for B.
        words: Words, each occurrence counted.
        unique_words: Words, each counted once.
        other_words: Occurrences of words that are encoded differently.
        other_unique_words: Words that are encoded differently, each counted once.
        tokens_a: Tokens of all words by A, each occurrence counted.
        tokens_b: The same by B.
        most_frequent: The most frequent words that are encoded differently; ties in the order of
            their bytes.
    """

    exact_a: bool
    exact_b: bool
    words: int
    unique_words: int
    other_words: int
    other_unique_words: int
    tokens_a: int
    tokens_b: int
    most_frequent: list[WordDifference]


class ComparedWords(NamedTuple):
    """Sums of some words for `WordDifferences`; `most_frequent` are (-count, word)."""

    words: int = 0
    unique_words: int = 0
    other_words: int = 0
    other_unique_words: int = 0
    tokens_a: int = 0
    tokens_b: int = 0
    most_frequent: Sequence[tuple[int, str]] = ()

    def plus(self, other: ComparedWords, top: int) -> ComparedWords:
        """Return the sum of two."""
        most_frequent = heapq.nsmallest(top, (*self.most_frequent, *other.most_frequent))
        sums = map(add, self[:-1], other[:-1])
        return ComparedWords(*sums)._replace(most_frequent=most_frequent)


def word_differences(
    pair: Pair,
    counted: CountedParts,
    *,
    top: int = 20,
    on_part: Callable[[], None] = lambda: None,
) -> WordDifferences:
    """Return how two tokenizers encode counted words."""
    encoders = [counted.encoder(each) for each in pair.tokenizers]
    comparison = WordComparison(pair, encoders, top)

    def compare(read: Callable[[], pa.Table]) -> ComparedWords:
        total = ComparedWords()
        for words, counts, (by_a, by_b) in encoded_by_all(pair.names, encoders, read()):
            total = total.plus(comparison.of_batch(words, counts, by_a, by_b), top)
        on_part()
        return total

    total = ComparedWords()
    for partition in counted.on_threads(compare, counted.added_up):
        total = total.plus(partition, top)
    return comparison.result(total)


class WordComparison:
    """Compares how two tokenizers encode words, a batch at a time; threads may share it."""

    def __init__(self, pair: Pair, encoders: Sequence[WordEncoder], top: int) -> None:
        self._pair = pair
        self._encoders = encoders
        self._top = top

    def of_batch(
        self,
        words: pa.ChunkedArray,
        counts: Integers,
        by_a: pa.LargeListArray,
        by_b: pa.LargeListArray,
    ) -> ComparedWords:
        """Return the sums of a batch of words."""
        other = _unequal(self._pair, by_a, by_b)
        numbers = np.flatnonzero(other)
        if len(numbers) > self._top:
            threshold = np.partition(counts[numbers], -self._top)[-self._top]
            numbers = numbers[counts[numbers] >= threshold]
        chosen = words.take(pa.array(numbers)).to_pylist()
        return ComparedWords(
            int(counts.sum()),
            len(counts),
            int(counts[other].sum()),
            int(other.sum()),
            _tokens_of(by_a, counts),
            _tokens_of(by_b, counts),
            list(zip((-counts[numbers]).tolist(), chosen, strict=True)),
        )

    def result(self, compared: ComparedWords) -> WordDifferences:
        """Return the differences of all words."""
        words = pa.array([word for _, word in compared.most_frequent], pa.large_string())
        tokens = [
            [
                [_shown_by_id(tokenizer, number) for number in ids]
                for ids in encoder.encode(words).to_pylist()
            ]
            for tokenizer, encoder in zip(self._pair.tokenizers, self._encoders, strict=True)
        ]
        return WordDifferences(
            self._encoders[0].exact,
            self._encoders[1].exact,
            *compared[:-1],
            [
                WordDifference(word, -count, a, b)
                for (count, word), a, b in zip(compared.most_frequent, *tokens, strict=True)
            ],
        )


def encoded_by_all(
    names: Sequence[str], encoders: Sequence[WordEncoder], words: pa.Table
) -> Iterator[tuple[pa.ChunkedArray, Integers, list[pa.LargeListArray]]]:
    """Yield words, how often each occurs, and their ids by each tokenizer, some at a time."""
    begin = 0
    by_all = starmap(_naming_errors, zip(names, encoders, repeat(words), strict=False))
    for batch in zip(*by_all, strict=True):
        counts = batch[0][1]
        # The words of counts, not the texts that an encoder makes of them.
        yield words["word"].slice(begin, len(counts)), counts, [ids for _, _, ids in batch]
        begin += len(counts)


def _naming_errors(
    name: str, encoder: WordEncoder, words: pa.Table
) -> Iterator[tuple[pa.Array, Integers, pa.LargeListArray]]:
    try:
        yield from encoded_words(words, encoder)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def _unequal(pair: Pair, by_a: pa.LargeListArray, by_b: pa.LargeListArray) -> Flags:
    """Return which words A and B encode to different tokens."""
    lengths = [np.diff(each.offsets.to_numpy()) for each in (by_a, by_b)]
    equally_long = lengths[0] == lengths[1]
    numbers = [
        of_tokens[vocabulary.positions(each.values.to_numpy())][np.repeat(equally_long, length)]
        for of_tokens, vocabulary, each, length in zip(
            pair.numbers, pair.vocabularies, (by_a, by_b), lengths, strict=True
        )
    ]
    unequal = np.concatenate([[0], np.cumsum(numbers[0] != numbers[1])])
    ends = np.cumsum(np.where(equally_long, lengths[0], 0))
    starts = np.concatenate([[0], ends[:-1]])
    other: Flags = ~equally_long | (unequal[ends] > unequal[starts])
    return other


def _tokens_of(encoded: pa.LargeListArray, counts: Integers) -> int:
    """Return the number of tokens of all occurrences."""
    return weighted_total(np.diff(encoded.offsets.to_numpy()), counts)


def _shown_by_id(tokenizer: Tokenizer, number: int) -> str:
    return shown(str(tokenizer.id_to_token(number)), tokenizer.spec.model_reads_bytes)

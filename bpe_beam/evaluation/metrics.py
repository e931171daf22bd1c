"""Tallies of tokens, and their figures: ratios of exact integers, divided once, and entropies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa
from msgspec import Struct

from bpe_beam import _native
from bpe_beam.counts.word_table import string_buffers
from bpe_beam.errors import DataError
from bpe_beam.evaluation.vocabulary import Flags, Integers, Vocabulary

RENYI_ALPHA = 2.5
"""The order of the Rényi entropy, as in the literature on tokenizers."""

RARE_BELOW = 100
"""Tokens that occur fewer times are rare, as in studies of the best size of a vocabulary."""


_MAXIMUM = 2.0**62
"""Sums stay below this, so that none is beyond 64 bits."""


@dataclass
class Tally:
    """Amounts of text and of its tokens; all are exact integers.

    Attributes:
        tokens: int64[tokens of the vocabulary], how often each occurs, by position.
        whole: int64[tokens of the vocabulary], how often each is a whole word; the unknown token
            never is.
        words: The number of words, each occurrence counted, as in all amounts.
        continued: The number of words of two or more tokens.
        characters: Characters (code points) of the words.
    """

    tokens: Integers
    whole: Integers
    words: int = 0
    continued: int = 0
    bytes: int = 0
    characters: int = 0
    _bound: float = field(default=0.0, repr=False)

    @staticmethod
    def empty(size: int) -> Tally:
        """Return the tally of no text, for a vocabulary of a size."""
        return Tally(np.zeros(size, np.int64), np.zeros(size, np.int64))

    def add_words(
        self,
        vocabulary: Vocabulary,
        texts: pa.Array,
        counts: Integers,
        encoded: pa.LargeListArray,
        *,
        with_tokens: bool = True,
    ) -> None:
        """Add words."""
        amounts = _native.add_word_tokens(
            *string_buffers(texts),
            counts,
            encoded.values.to_numpy(),
            encoded.offsets.to_numpy(),
            vocabulary.position_of_id,
            vocabulary.ids,
            vocabulary.unknown,
            with_tokens,
            self.tokens,
            self.whole,
        )
        self._add_amounts(*amounts)

    def add_whole_words(self, whole: _native.WholeWords, texts: pa.Array, counts: Integers) -> None:
        """Add words without tokens; one with the text of a token as if it were that token."""
        self._add_amounts(*whole.add(*string_buffers(texts), counts, self.whole))

    def _add_amounts(
        self, words: int, continued: int, byte_count: int, characters: int, bound: float
    ) -> None:
        self._add_bound(bound)
        self.words += words
        self.continued += continued
        self.bytes += byte_count
        self.characters += characters

    def add_ids(self, vocabulary: Vocabulary, encoded: pa.LargeListArray) -> None:
        """Add the tokens of texts, whose words are added without tokens."""
        np.add.at(self.tokens, vocabulary.positions(encoded.values.to_numpy()), 1)

    def add(self, other: Tally) -> None:
        """Add another tally of the same vocabulary."""
        self._add_bound(other._bound)
        for each in fields(self):
            if each.name != "_bound":
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def _add_bound(self, bound: float) -> None:
        self._bound += bound
        if self._bound >= _MAXIMUM:
            raise DataError("the counts are too large to be evaluated: their sums need 64 bits")


class Metrics(Struct, frozen=True):
    """The figures of a tokenizer on one source; a ratio is None where an amount is 0 or unknown.

    Of tokens without their text, words and characters are unknown: they are 0.

    Attributes:
        words: Words, each occurrence counted.
        characters: Characters (code points) of the words.
        tokens_per_word: The fertility.
        words_kept_whole: The share of words that are one token, not the unknown one (STRR).
        continued_words: The share of words of two or more tokens.
        single_byte_tokens: The share of tokens that are one byte of text.
        partial_character_tokens: The share of tokens that are not whole characters.
        unknown_tokens: The share of unknown tokens.
        vocabulary_used: The number of different tokens that occur.
        vocabulary_used_share: The same over the size of the vocabulary.
        rare_vocabulary_share: The share of the vocabulary that occurs under 100 times, or never.
        entropy: Shannon's entropy of the tokens, in bits a token.
        renyi_entropy: Their Rényi entropy of order 2.5, in bits.
        renyi_efficiency: The Rényi entropy over the logarithm of the vocabulary's size.
    """

    words: int
    bytes: int
    characters: int
    tokens: int
    bytes_per_token: float | None
    characters_per_token: float | None
    words_per_token: float | None
    tokens_per_word: float | None
    words_kept_whole: float | None
    continued_words: float | None
    single_byte_tokens: float | None
    partial_character_tokens: float | None
    unknown_tokens: float | None
    vocabulary_used: int
    vocabulary_used_share: float | None
    rare_vocabulary_share: float | None
    entropy: float | None
    renyi_entropy: float | None
    renyi_efficiency: float | None


def metrics_of(
    tally: Tally, size: int, single_byte: Flags, partial: Flags, unknown: int | None
) -> Metrics:
    """Return the figures of a tally."""
    counts = tally.tokens
    tokens = int(counts.sum())
    used = int(np.count_nonzero(counts))
    renyi = renyi_entropy(counts)
    return Metrics(
        words=tally.words,
        bytes=tally.bytes,
        characters=tally.characters,
        tokens=tokens,
        bytes_per_token=ratio(tally.bytes, tokens) if tally.bytes else None,
        characters_per_token=ratio(tally.characters, tokens) if tally.characters else None,
        words_per_token=ratio(tally.words, tokens) if tally.words else None,
        tokens_per_word=ratio(tokens, tally.words),
        words_kept_whole=ratio(int(tally.whole.sum()), tally.words),
        continued_words=ratio(tally.continued, tally.words),
        single_byte_tokens=ratio(int(counts[single_byte].sum()), tokens),
        partial_character_tokens=ratio(int(counts[partial].sum()), tokens),
        unknown_tokens=ratio(0 if unknown is None else int(counts[unknown]), tokens),
        vocabulary_used=used,
        vocabulary_used_share=ratio(used, size),
        rare_vocabulary_share=ratio(size - int(np.count_nonzero(counts >= RARE_BELOW)), size),
        entropy=entropy(counts),
        renyi_entropy=renyi,
        renyi_efficiency=None if renyi is None or size < 2 else renyi / math.log2(size),
    )


def ratio(amount: int, of: int) -> float | None:
    """Return a quotient of integers; None where the divisor is 0."""
    return amount / of if of else None


def entropy(counts: Integers) -> float | None:
    """Return Shannon's entropy of how often things occur, in bits; None where nothing does."""
    shares = _shares(counts)
    return None if shares is None else abs(float(-(shares * np.log2(shares)).sum()))


def renyi_entropy(counts: Integers, alpha: float = RENYI_ALPHA) -> float | None:
    """Return the Rényi entropy of how often things occur, in bits; None where nothing does."""
    shares = _shares(counts)
    if shares is None:
        return None
    return abs(math.log2(float((shares**alpha).sum())) / (1 - alpha))


def _shares(counts: Integers) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    counts = counts[counts > 0]
    return counts / counts.sum() if len(counts) else None


class Fairness(Struct, frozen=True):
    """The Gini coefficient of a cost over sources (near 1 if one has all), and extremes."""

    gini: float
    worst_to_best: float
    worst: str
    best: str


def fairness(costs: Mapping[str, float | None]) -> Fairness | None:
    """Return how unequal costs are; None with fewer than two sources that have one."""
    known = {source: cost for source, cost in costs.items() if cost}
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda source: (known[source], source))
    best, worst = ordered[0], ordered[-1]
    return Fairness(
        gini=gini([known[source] for source in ordered]),
        worst_to_best=known[worst] / known[best],
        worst=worst,
        best=best,
    )


def gini(values: Sequence[float]) -> float:
    """Return the Gini coefficient: half the mean difference of two values over the mean value."""
    ordered = sorted(values)
    size = len(ordered)
    weighted = math.fsum((2 * rank - size + 1) * value for rank, value in enumerate(ordered))
    return weighted / (size * math.fsum(ordered))

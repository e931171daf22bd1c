"""`Tally`: how often each token occurs in the words of one source, and what else metrics need."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.counts.word_table import string_buffers
from bpe_beam.errors import DataError
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary

_MAXIMUM = 2.0**62
"""Sums stay below this, so that none is beyond 64 bits."""


@dataclass
class Tally:
    """Amounts of text and of its tokens; all are exact integers.

    Attributes:
        tokens: int64[tokens of the vocabulary], how often each occurs, by position.
        whole: int64[tokens of the vocabulary], how often each is a whole word; the unknown token
            never is.
        words: The number of words, each occurrence counted.
        continued: The number of words of two or more tokens, likewise.
        bytes: UTF-8 bytes of the words.
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

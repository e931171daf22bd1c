"""An estimate of the work of an evaluation, for the time left.

Parts of counts are no even measure: a tokenizer of another pattern than that of the counts takes
twice as long for a word. Beside the words, or before them with one thread, a vocabulary is looked
at: which merges make its tokens, of which scripts they are. After the words it is found out which
tokens no text gives.

Costs are microseconds as measured on one machine; only their ratios matter.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from bpe_beam.evaluation.counted import CountedParts

_PART = 3000.0
"""The cost of a part, whatever it has."""
_WORD, _WORD_AS_TEXT = 0.43, 0.61
"""The cost of a counted word, and of one that is encoded as a text of its own."""
_TOKEN_BEFORE, _TOKEN_BESIDE, _TOKEN, _TOKEN_OF_SOURCE = 0.3, 1.5, 0.9, 0.01
"""The cost of a token of the vocabulary: before the words, beside them, after them, and for each
source."""


class TokenizerWork(NamedTuple):
    """The work for one tokenizer, in microseconds.

    Attributes:
        parts: How many parts are reported.
        before: The work until the first part begins.
        of_part: The work for the words of a part, over the number of threads.
        of_tokens: The work for the vocabulary, after the words.
        beside: That beside the first words, over the number of threads.
    """

    parts: int
    before: int
    of_part: int
    of_tokens: int
    beside: int = 0

    def done(self, parts: int) -> int:
        """Return the work that is done when some parts are, at least one."""
        of_words = parts * self.of_part
        # One thread has begun to look at the vocabulary before two threads are at the words.
        return self.before + of_words + min(self.beside, (self.beside + of_words) // 2)

    @property
    def all(self) -> int:
        """All work for the tokenizer."""
        return self.before + self.parts * self.of_part + self.beside + self.of_tokens

    @staticmethod
    def of(
        words: CountedParts, parts: int, vocab_size: int, at_once: int, *, exact: bool
    ) -> TokenizerWork:
        """Return the work that is expected."""
        sources = words.manifest.sources
        each = [one.unique_words for one in sources.values()] if sources else []
        number = sum(each) or words.manifest.unique_words
        cost = _WORD if exact else _WORD_AS_TEXT
        of_words = (parts * _PART + number * cost) / words.workers
        before, beside = vocab_size * _TOKEN_BEFORE / at_once, 0.0
        if words.workers == 1:
            before += vocab_size * _TOKEN_BESIDE
        else:
            beside = vocab_size * _TOKEN_BESIDE / words.workers
        after = vocab_size * (_TOKEN + _TOKEN_OF_SOURCE * len(each)) / at_once
        of_part = ceil(of_words / max(1, parts))
        return TokenizerWork(parts, ceil(before), of_part, ceil(after), ceil(beside))


class EvaluationWork:
    """The work of an evaluation of several tokenizers: what is done, and all."""

    def __init__(self, tokenizers: Sequence[TokenizerWork]) -> None:
        self._tokenizers = tokenizers
        self._parts = [0] * len(tokenizers)
        self._ended = [False] * len(tokenizers)
        self._lock = threading.Lock()

    def end_part(self, tokenizer: int) -> None:
        """Note that a part of a tokenizer, by its number, is done; from any thread."""
        with self._lock:
            self._parts[tokenizer] += 1

    def end(self, tokenizer: int) -> None:
        """Note that all of a tokenizer is done, after its parts."""
        self._ended[tokenizer] = True

    def amounts(self) -> tuple[float, float]:
        """Return the work that is done, and all work."""
        done = 0
        for one, parts, ended in zip(self._tokenizers, self._parts, self._ended, strict=True):
            if ended:
                done += one.all
            elif parts:
                done += one.done(parts)
        return done, sum(one.all for one in self._tokenizers)

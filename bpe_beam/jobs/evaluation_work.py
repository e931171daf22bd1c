"""An estimate of the work of an evaluation, for the time left.

Parts of counts are no even measure: a tokenizer of another pattern than that of the counts takes
twice as long for a word, and between two tokenizers there are the facts of a vocabulary: which
merges make its tokens, of which scripts they are, which of them no text gives.

Costs are microseconds as measured on one machine; only their ratios matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.progress import Snapshot

_WORD, _WORD_AS_TEXT = 0.6, 1.0
"""The cost of a counted word, and of one that is encoded as a text of its own."""
_TOKEN, _TOKEN_OF_SOURCE = 4.0, 0.02
"""The cost of a token of the vocabulary, once and for each source."""


class TokenizerWork(NamedTuple):
    """The work for one tokenizer, in microseconds.

    Attributes:
        parts: How many parts are reported.
        words: The work of each thread for the words, spread evenly over the parts.
        tokens: The work for the vocabulary, after the words.
    """

    parts: int
    words: float
    tokens: float

    @staticmethod
    def of(words: CountedParts, parts: int, vocab_size: int, *, exact: bool) -> TokenizerWork:
        """Return the work that is expected.

        Args:
            words: The counted words.
            parts: How many parts are reported.
            vocab_size: The number of tokens.
            exact: See `WordEncoder`.
        """
        sources = words.manifest.sources
        each = [one.unique_words for one in sources.values()] if sources else []
        number = sum(each) or words.manifest.unique_words
        cost = _WORD if exact else _WORD_AS_TEXT
        of_tokens = vocab_size * (_TOKEN + _TOKEN_OF_SOURCE * len(each))
        return TokenizerWork(parts, number * cost / words.workers, of_tokens)


class EvaluationWork:
    """The work of an evaluation of counts; called with a snapshot of its stage.

    The stage counts the parts of all tokenizers, one tokenizer after the other, and has the counter
    `_tokenizers` of those that are finished.

    Args:
        tokenizers: The work for each, in order.
    """

    def __init__(self, tokenizers: Sequence[TokenizerWork]) -> None:
        self._tokenizers = tuple(tokenizers)
        self._total = sum(one.words + one.tokens for one in tokenizers)

    def __call__(self, now: Snapshot) -> tuple[float, float]:
        """Return the work that is done, and all work."""
        done, parts = 0.0, now.done
        finished = now.counters.get("_tokenizers", 0)
        for number, one in enumerate(self._tokenizers):
            own = min(parts, one.parts)
            parts -= own
            done += one.words * own / max(1, one.parts)
            done += one.tokens if number < finished else 0.0
        return done, self._total

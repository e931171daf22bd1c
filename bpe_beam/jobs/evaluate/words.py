"""Counted words, of a counts folder or of texts: their tallies by any tokenizer, by source.

A tokenizer that splits texts into the same words has the tokens of the counted words. For others
the words by their rules, or the tokens of the texts, are counted too; see `texts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from bpe_beam.errors import DataError
from bpe_beam.evaluation.counted import CountedParts, source_groups, tallies_of_counts
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.evaluation.word_encoding import is_exact, rules_of_words
from bpe_beam.shards.token_counts import SourceCounts
from bpe_beam.tokenizer.tokenizer import Tokenizer

TokensOfTexts = CountedParts | Iterator[SourceCounts]
"""Words with the tokens of the texts, or how often each id occurs in each source."""


class CountedWords:
    """Counted words, of a folder or of texts."""

    def __init__(
        self,
        parts: CountedParts,
        count_tokens: Callable[[Tokenizer], Iterator[SourceCounts]] | None = None,
        others: Sequence[CountedParts] = (),
    ) -> None:
        self.parts = parts
        self.manifest = parts.manifest
        self._count_tokens = count_tokens
        self._others = {other.rules: other for other in others}

    def steps(self, tokenizer: Tokenizer) -> int:
        """Return how often `tallies` calls `on_part` for a tokenizer."""
        return len(self.parts.parts) * len(source_groups(self.manifest, len(tokenizer.vocab)))

    def tokens_of_texts(self, tokenizer: Tokenizer) -> TokensOfTexts | None:
        """Return the tokens of the texts, counted by another pass over the texts if need be.

        None if the counted words have the same tokens, or there are no texts.
        """
        if is_exact(tokenizer, *self.parts.rules):
            return None
        rules = rules_of_words(tokenizer)
        if rules is not None and (rules.normalizer, rules.pretokenizer) in self._others:
            return self._others[rules.normalizer, rules.pretokenizer]
        return None if self._count_tokens is None else self._count_tokens(tokenizer)

    def tallies(
        self,
        vocabulary: Vocabulary,
        of_texts: TokensOfTexts | None,
        on_part: Callable[[], None],
        go_on: Callable[[], None],
    ) -> Iterator[tuple[str | None, Tally]]:
        """Yield the sources with their tallies; without sources, the only one is None."""
        tallies = tallies_of_counts(
            self.parts, vocabulary, on_part=on_part, go_on=go_on, with_tokens=of_texts is None
        )
        if of_texts is None:
            yield from tallies
            return
        tokens = _tokens(of_texts, vocabulary, go_on)
        with ThreadPoolExecutor(1, "ahead") as pool:  # takes the tokens of the next source
            waiting = pool.submit(next, tokens, None)
            for source, tally in tallies:
                counted = waiting.result()
                if counted is None or counted[0] != source:
                    raise DataError(
                        "the texts have changed while they were evaluated: run it again"
                    )
                waiting = pool.submit(next, tokens, None)
                tally.tokens += counted[1]
                yield source, tally


def _tokens(
    of_texts: TokensOfTexts, vocabulary: Vocabulary, go_on: Callable[[], None]
) -> Iterator[tuple[str | None, Integers]]:
    """Yield each source, and how often each token of the vocabulary occurs in it."""
    if isinstance(of_texts, CountedParts):
        for source, tally in tallies_of_counts(of_texts, vocabulary, go_on=go_on):
            yield source, tally.tokens
    else:
        for counted in of_texts:
            yield counted.source, counted.counts

"""Counted words, of a counts folder or of texts: their tallies by any tokenizer, by source.

A tokenizer that splits texts into the same words has the tokens of the counted words. For others
the words by their rules, or the tokens of the texts, are counted too; see `texts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.errors import DataError
from bpe_beam.evaluation.counted import CountedParts, source_groups, tallies_of_counts
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder, is_exact, rules_of_words
from bpe_beam.shards.token_counts import SourceCounts
from bpe_beam.tokenizer.tokenizer import Tokenizer

Tallies = Iterator[tuple[str | None, Tally]]
"""The tallies of a tokenizer by source; without sources, of None."""


class CountedWords:
    """Counted words, of a folder or of texts.

    Attributes:
        parts: The words.
        manifest: Their manifest.
    """

    def __init__(
        self,
        parts: CountedParts,
        tokens_of_texts: Callable[[Tokenizer], Iterator[SourceCounts]] | None = None,
        others: Sequence[CountedParts] = (),
    ) -> None:
        self.parts = parts
        self.manifest = parts.manifest
        self._tokens_of_texts = tokens_of_texts
        self._others = {_rules(other.manifest): other for other in others}

    def steps(self, tokenizer: Tokenizer) -> int:
        """Return how often `tallies` calls `on_part` for a tokenizer."""
        return len(self.parts.parts) * len(source_groups(self.manifest, len(tokenizer.vocab)))

    def encoder(self, tokenizer: Tokenizer) -> WordEncoder:
        """Return the encoder of the words."""
        return WordEncoder(tokenizer, *_rules(self.manifest))

    def pass_over_texts(self, tokenizer: Tokenizer) -> Iterator[SourceCounts] | None:
        """Return how often each id occurs in each source, by another pass over the texts.

        None if the counted words, or the words of the tokenizer's rules, have the same tokens.
        """
        tokens = self._tokens_of_texts
        if tokens is None or self._is_exact(tokenizer) or self._words_by_rules(tokenizer):
            return None
        return tokens(tokenizer)

    def tokens_by_rules(
        self, vocabulary: Vocabulary, go_on: Callable[[], None] = lambda: None
    ) -> Iterator[SourceCounts] | None:
        """Return how often each id occurs in each source, by words of the tokenizer's rules."""
        exact = self._is_exact(vocabulary.tokenizer)
        words = None if exact else self._words_by_rules(vocabulary.tokenizer)
        return None if words is None else _tokens_of(vocabulary, words, go_on)

    def _is_exact(self, tokenizer: Tokenizer) -> bool:
        return is_exact(tokenizer, *_rules(self.manifest))

    def _words_by_rules(self, tokenizer: Tokenizer) -> CountedParts | None:
        rules = rules_of_words(tokenizer)
        return self._others.get((rules.normalizer, rules.pretokenizer)) if rules else None

    def tallies(
        self,
        vocabulary: Vocabulary,
        of_texts: Iterator[SourceCounts] | None,
        on_part: Callable[[], None],
        go_on: Callable[[], None] = lambda: None,
    ) -> Tallies:
        """Yield the sources with their tallies."""
        tallies = tallies_of_counts(
            self.parts,
            vocabulary,
            self.encoder(vocabulary.tokenizer),
            on_part=on_part,
            go_on=go_on,
            with_tokens=of_texts is None,
        )
        if of_texts is None:
            yield from tallies
            return
        if self.parts.workers > 1:
            of_texts = _ahead(of_texts)
        for (source, tally), counted in zip(tallies, of_texts, strict=True):
            if source != counted.source:
                raise DataError("the texts have changed while they were evaluated: run it again")
            tally.tokens += counted.counts
            yield source, tally


def _rules(manifest: CountsManifest) -> tuple[str, str]:
    return manifest.normalizer, manifest.pretokenizer


def _tokens_of(
    vocabulary: Vocabulary, words: CountedParts, go_on: Callable[[], None]
) -> Iterator[SourceCounts]:
    """Yield how often each id occurs in each source, of words that have the tokens of the texts."""
    encoder = WordEncoder(vocabulary.tokenizer, *_rules(words.manifest))
    for source, tally in tallies_of_counts(words, vocabulary, encoder, go_on=go_on):
        yield SourceCounts(source, vocabulary.ids.astype(np.uint32), tally.tokens)


def _ahead(items: Iterator[SourceCounts]) -> Iterator[SourceCounts]:
    """Return the items; a thread takes each of them before it is needed, the first at once."""
    pool = ThreadPoolExecutor(1, "ahead")
    first = pool.submit(next, items, None)

    def each() -> Iterator[SourceCounts]:
        with pool:
            waiting = first
            while (item := waiting.result()) is not None:
                waiting = pool.submit(next, items, None)
                yield item

    return each()

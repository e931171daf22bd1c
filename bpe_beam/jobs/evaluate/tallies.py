"""Tallies by source: of counted words by any tokenizer, and of the ids of tokens folders.

A tokenizer that splits texts into the same words has the tokens of the counted words. For others
the words by their rules, or the tokens of the texts, are counted too; see `texts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np

from bpe_beam import _native
from bpe_beam.errors import DataError
from bpe_beam.evaluation.counted import CountedParts, source_groups, tallies_of_counts
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.evaluation.word_encoding import is_exact, rules_of_words
from bpe_beam.folders.artifact_names import SHARDS_TOKENIZER_FILE
from bpe_beam.shards.document_batches import document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.token_counts import Amounts, SourceCounts, read_token_counts
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.token_counter import IdColumns

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

            def take() -> Future[tuple[str | None, Integers] | None]:
                taken = pool.submit(next, tokens, None)
                if self.parts.workers == 1:
                    wait([taken])
                return taken

            waiting = take()
            for source, tally in tallies:
                counted = waiting.result()
                if counted is None or counted[0] != source:
                    raise DataError(
                        "the texts have changed while they were evaluated: run it again"
                    )
                waiting = take()
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


class TokensFolder:
    """A tokens folder: its manifest, and the tokenizer that made it."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self.manifest = read_manifest(storage, folder)
        url = storage.join(folder, SHARDS_TOKENIZER_FILE)
        data = read_hashed(storage, url, self.manifest.tokenizer.fingerprint)
        self.tokenizer = Tokenizer.from_json(data)
        self._storage = storage
        self._folder = folder

    def tallies(self, on_shards: Callable[[int], None]) -> Iterator[tuple[str | None, Tally]]:
        """Yield the sources with their tallies, without words and characters.

        Of a folder without token counts, all shards are read, and sources are not separated.
        """
        file = self.manifest.token_counts
        if file is None:
            yield None, self._tally(None, self._counted(on_shards))
            return
        for counted in read_token_counts(
            self._storage,
            self._folder,
            self.manifest.tokenizer.fingerprint,
            self.manifest.tokens_by_source,
            file,
        ):
            yield counted.source, self._tally(counted.source, counted.counts)
        on_shards(len(self.manifest.shards))

    def _tally(self, source: str | None, counts: Amounts) -> Tally:
        texts = self.manifest.texts_by_source
        chosen = texts.values() if source is None else [texts[source]]
        text_bytes = sum(each.text_bytes for each in chosen)
        return Tally(counts, np.zeros(len(counts), np.int64), bytes=text_bytes)

    def _counted(self, on_shards: Callable[[int], None]) -> Amounts:
        """Return how often each id occurs in all shards: documents of windows or `WriteTokens`."""
        columns = IdColumns(self.tokenizer)
        table = np.zeros((1, columns.width), np.int64)
        format_ = shard_format(self.manifest.format)
        for shard in self.manifest.shards:
            with format_.reader(self._storage, self._folder, shard.name) as reader:
                for batch in document_batches(reader):
                    ends = np.array([0, len(batch.ids)])
                    ids = columns.of(batch.ids)
                    _native.add_id_counts(ids, ends, np.empty(0, np.uint32), table)
            on_shards(1)
        return columns.known(table[0])

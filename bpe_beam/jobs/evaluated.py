"""What `evaluate` evaluates tokenizers on: words of counts, the words and tokens of texts, tokens.

Each gives the tallies by source of a tokenizer. Of texts the words are counted first, by `count`.
A tokenizer that splits texts into the same words has the tokens of the counted words. For others
the words of their own rules are counted in the same pass, in memory. The tokens of those whose
rules are not known by name, or whose words are too many for that, are counted in a pass of their
own over the texts, as `tokenize` would make them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from bpe_beam import _native
from bpe_beam.counts.manifest import CountsManifest, read_manifest
from bpe_beam.counts.word_counter import WordRules
from bpe_beam.engines.run import workers_of
from bpe_beam.errors import DataError, parameter_renamed
from bpe_beam.evaluation.counted import CountedParts, source_groups, tallies_of_counts
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder, is_exact, rules_of_words
from bpe_beam.folders.artifact_names import SHARDS_TOKENIZER_FILE
from bpe_beam.folders.output_folder import COUNTS
from bpe_beam.jobs.evaluation_work import TokenizerWork
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.shards import manifest as shard_manifest
from bpe_beam.shards.document_batches import document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.token_counts import Amounts, SourceCounts, read_token_counts
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.token_counter import IdColumns

Tallies = Iterator[tuple[str | None, Tally]]


class CountedWords:
    """Counted words, of a folder or of texts.

    Attributes:
        parts: The words.
        manifest: Their manifest.
    """

    def __init__(
        self,
        parts: CountedParts,
        texts: Texts | None = None,
        others: Sequence[CountedParts] = (),
    ) -> None:
        self.parts = parts
        self.manifest = parts.manifest
        self._texts = texts
        self._others = {_rules(other.manifest): other for other in others}

    def work(self, tokenizer: Tokenizer, at_once: int) -> TokenizerWork:
        """Return the work that is expected; its parts are how often `tallies` calls `on_part`."""
        size = len(tokenizer.vocab)
        parts = len(self.parts.parts) * len(source_groups(self.manifest, size))
        exact = is_exact(tokenizer, *_rules(self.manifest))
        return TokenizerWork.of(self.parts, parts, size, at_once, exact=exact)

    def encoder(self, tokenizer: Tokenizer) -> WordEncoder:
        """Return the encoder of the words."""
        return WordEncoder(tokenizer, *_rules(self.manifest))

    def pass_over_texts(self, tokenizer: Tokenizer) -> Iterator[SourceCounts] | None:
        """Count how often each id occurs in each source, by a pass of its own over the texts.

        Returns:
            The counts; None where they are those of the words, or of other words.
        """
        if self._texts is None or self._is_exact(tokenizer) or self._own_words(tokenizer):
            return None
        return self._texts.tokens(tokenizer)

    def own_tokens(
        self, vocabulary: Vocabulary, go_on: Callable[[], None] = lambda: None
    ) -> Iterator[SourceCounts] | None:
        """Return how often each id occurs in each source, by words of the tokenizer's own rules."""
        own = (
            None if self._is_exact(vocabulary.tokenizer) else self._own_words(vocabulary.tokenizer)
        )
        return None if own is None else _tokens_of(vocabulary, own, go_on)

    def _is_exact(self, tokenizer: Tokenizer) -> bool:
        return is_exact(tokenizer, *_rules(self.manifest))

    def _own_words(self, tokenizer: Tokenizer) -> CountedParts | None:
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
    """Return items, of which a thread takes each one before it is needed, the first at once."""
    pool = ThreadPoolExecutor(1, "ahead")
    first = pool.submit(next, items, None)

    def each() -> Iterator[SourceCounts]:
        with pool:
            waiting = first
            while (item := waiting.result()) is not None:
                waiting = pool.submit(next, items, None)
                yield item

    return each()


@dataclass(frozen=True)
class Texts:
    """The texts of a corpus, and the folder for what is counted of them.

    Attributes:
        storage: The storage client.
        input: Where the texts are.
        run: How their jobs run.
        folder: The folder.
        progress: Shows the progress of the jobs.
        in_memory: Whether words may be counted in memory: nothing is to be kept in the folder.
    """

    storage: Storage
    input: InputSettings
    run: RunSettings
    folder: str
    progress: Progress
    in_memory: bool

    def words(self, pretokenizer: str, tokenizers: Sequence[Tokenizer]) -> CountedWords:
        """Count the words, in memory if that is possible, else into a folder.

        In memory the words of tokenizers that split texts in another way are counted in the same
        pass.

        Returns:
            The words.
        """
        from bpe_beam.jobs import count, count_in_memory

        workers = workers_of(self.run)
        output = self.storage.join(self.folder, COUNTS)
        settings = CountSettings(self.input, output, self.run, pretokenizer=pretokenizer)
        found = None
        if self.in_memory:
            others = _other_rules(tokenizers, pretokenizer)
            there = self.storage.join(self.folder, "in-memory")
            in_memory = replace(settings, output=there)
            found = count_in_memory.words_in_memory(in_memory, others, self.storage, self.progress)
        if found is not None:
            parts, *rest = [CountedParts.in_memory(counts, workers) for counts in found]
            return CountedWords(parts, self, rest)
        with parameter_renamed("output", "work"):
            count.run(settings, self.progress)
        manifest = read_manifest(self.storage, output)
        return CountedWords(CountedParts.of_folder(self.storage, output, manifest, workers), self)

    def tokens(self, tokenizer: Tokenizer) -> Iterator[SourceCounts]:
        """Return how often each id occurs in each source, by a pass over the texts."""
        from bpe_beam.jobs.count_tokens import token_counts

        output = self.storage.join(self.folder, f"tokens-{tokenizer.fingerprint[:16]}")
        tokenizer_file = self.storage.join(output, SHARDS_TOKENIZER_FILE)
        settings = TokenizeSettings(self.input, tokenizer_file, output, self.run)
        with parameter_renamed("output", "work"):
            return token_counts(settings, self.storage, tokenizer, self.progress)


def _other_rules(tokenizers: Sequence[Tokenizer], pretokenizer: str) -> list[WordRules]:
    """Return the rules of tokenizers that split texts in another way, as far as they are known."""
    found = (rules_of_words(one) for one in tokenizers if not is_exact(one, "none", pretokenizer))
    return [*dict.fromkeys(rules for rules in found if rules is not None)]


@contextmanager
def folder_for_texts(chosen: str | None) -> Iterator[str]:
    """Yield the chosen folder, or a temporary one, which is removed."""
    if chosen is not None:
        yield chosen
        return
    with tempfile.TemporaryDirectory(prefix="bpe-beam-evaluate-") as folder:
        yield folder


class TokensFolder:
    """A tokens folder, with the tokenizer that made it.

    Attributes:
        manifest: Its manifest.
        tokenizer: The tokenizer.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self.manifest = shard_manifest.read_manifest(storage, folder)
        url = storage.join(folder, SHARDS_TOKENIZER_FILE)
        data = read_hashed(storage, url, self.manifest.tokenizer.fingerprint)
        self.tokenizer = Tokenizer.from_json(data)
        self._storage = storage
        self._folder = folder

    def tallies(self, on_shards: Callable[[int], None]) -> Tallies:
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

"""What `evaluate` evaluates tokenizers on: words of counts, the words and tokens of texts, tokens.

Each gives the tallies by source of a tokenizer. Of texts the words are counted first, by `count`.
A tokenizer that splits texts into the same words has the tokens of the counted words. The tokens of
any other are counted in a pass of its own over the texts, as `tokenize` would make them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from bpe_beam import _native
from bpe_beam.counts.manifest import CountsManifest, read_manifest
from bpe_beam.errors import DataError, NotFoundError
from bpe_beam.evaluation.counted import source_groups, tallies_of_counts
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.folders.artifact_names import TOKENIZER_FILE
from bpe_beam.folders.output_folder import COUNTS
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
    """The words of a counts folder.

    Args:
        storage: The storage client.
        folder: The counts folder.
        workers: The number of threads.
        texts: The texts of the words, if they are at hand.

    Attributes:
        manifest: The manifest of the folder.
    """

    def __init__(
        self, storage: Storage, folder: str, workers: int, texts: Texts | None = None
    ) -> None:
        self.manifest: CountsManifest = read_manifest(storage, folder)
        self._storage = storage
        self._folder = folder
        self._workers = workers
        self._texts = texts

    def parts(self, tokenizer: Tokenizer) -> int:
        """Return how often `tallies` calls `on_part`."""
        return len(self.manifest.parts) * len(source_groups(self.manifest, len(tokenizer.vocab)))

    def encoder(self, tokenizer: Tokenizer) -> WordEncoder:
        """Return the encoder of the words."""
        return WordEncoder(tokenizer, self.manifest.normalizer, self.manifest.pretokenizer)

    def tokens_of_texts(self, tokenizer: Tokenizer) -> Iterator[SourceCounts] | None:
        """Return how often each id occurs in each source of the texts, in a pass over them.

        None without texts, or where the words have the same tokens.
        """
        if self._texts is None or self.encoder(tokenizer).exact:
            return None
        return self._texts.tokens(tokenizer)

    def tallies(
        self,
        vocabulary: Vocabulary,
        of_texts: Iterator[SourceCounts] | None,
        on_part: Callable[[], None],
    ) -> Tallies:
        """Yield the sources with their tallies.

        Args:
            vocabulary: The tokens of the tokenizer.
            of_texts: See `tokens_of_texts`.
            on_part: See `tallies_of_counts`.

        Raises:
            DataError: See `tallies_of_counts`.
        """
        tallies = tallies_of_counts(
            self._storage,
            self._folder,
            self.manifest,
            vocabulary,
            self.encoder(vocabulary.tokenizer),
            workers=self._workers,
            on_part=on_part,
            with_tokens=of_texts is None,
        )
        if of_texts is None:
            yield from tallies
            return
        for (source, tally), counted in zip(tallies, of_texts, strict=True):
            if source != counted.source:
                raise DataError("the texts have changed while they were evaluated: run it again")
            tally.tokens += counted.counts
            yield source, tally


@dataclass(frozen=True)
class Texts:
    """The texts of a corpus, and the folder for what is counted of them.

    Attributes:
        storage: The storage client.
        input: Where the texts are.
        run: How their jobs run.
        folder: The folder.
        progress: Shows the progress of the jobs.
    """

    storage: Storage
    input: InputSettings
    run: RunSettings
    folder: str
    progress: Progress

    def words(self, normalizer: str, pretokenizer: str) -> str:
        """Count the words.

        Args:
            normalizer: The normalizer by name.
            pretokenizer: The pre-tokenizer by name.

        Returns:
            The folder of the counts.
        """
        from bpe_beam.jobs import count

        output = self.storage.join(self.folder, COUNTS)
        settings = CountSettings(
            self.input, output, self.run, normalizer=normalizer, pretokenizer=pretokenizer
        )
        count.run(settings, self.progress)
        return output

    def tokens(self, tokenizer: Tokenizer) -> Iterator[SourceCounts]:
        """Return how often each id occurs in each source, by a pass over the texts."""
        from bpe_beam.jobs.count_tokens import token_counts

        output = self.storage.join(self.folder, f"tokens-{tokenizer.fingerprint[:16]}")
        tokenizer_file = self.storage.join(output, TOKENIZER_FILE)
        settings = TokenizeSettings(self.input, tokenizer_file, output, self.run)
        return token_counts(settings, self.storage, tokenizer, self.progress)


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

    Args:
        storage: The storage client.
        folder: The folder.

    Attributes:
        manifest: Its manifest.
        tokenizer: The tokenizer.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self.manifest = shard_manifest.read_manifest(storage, folder)
        url = storage.join(folder, TOKENIZER_FILE)
        data = read_hashed(storage, url, self.manifest.tokenizer.fingerprint)
        self.tokenizer = Tokenizer.from_json(data)
        self._storage = storage
        self._folder = folder

    def tallies(self, on_shard: Callable[[], None]) -> Tallies:
        """Yield the sources with their tallies, without words and characters.

        Without token counts, all shards are read, and sources are not separated.

        Args:
            on_shard: Called after each shard, of those that are read.

        Raises:
            DataError: A file is damaged.
        """
        try:
            for counted in read_token_counts(
                self._storage,
                self._folder,
                self.manifest.tokenizer.fingerprint,
                self.manifest.tokens_by_source,
            ):
                yield counted.source, self._tally(counted.source, counted.counts)
        except NotFoundError:
            yield None, self._tally(None, self._counted(on_shard))

    def _tally(self, source: str | None, counts: Amounts) -> Tally:
        text_bytes = self.manifest.totals.text_bytes
        if source is not None:
            text_bytes = (self.manifest.sources or {})[source].text_bytes
        return Tally(counts, np.zeros(len(counts), np.int64), bytes=text_bytes)

    def _counted(self, on_shard: Callable[[], None]) -> Amounts:
        """Return how often each id occurs in all shards."""
        columns = IdColumns(self.tokenizer)
        table = np.zeros((1, columns.width), np.int64)
        format_ = shard_format(self.manifest.format)
        for shard in self.manifest.shards:
            with format_.reader(self._storage, self._folder, shard.name) as reader:
                for batch in document_batches(reader):
                    ends = np.array([0, len(batch.ids)])
                    ids = columns.of(batch.ids)
                    _native.add_id_counts(ids, ends, np.empty(0, np.uint32), table)
            on_shard()
        return columns.known(table[0])

"""Tokens folders: the tallies of their ids by source."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bpe_beam import _native
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.folders.artifact_names import SHARDS_TOKENIZER_FILE
from bpe_beam.shards.document_batches import document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.token_counts import Amounts, read_token_counts
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.token_counter import IdColumns


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

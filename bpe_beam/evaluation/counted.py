"""Evaluation on the words of a counts folder: seconds, whatever the corpus was.

Memory: one part of the counts for each thread, and two integers for each token of the vocabulary
and each source.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from bpe_beam.counts.artifact import read_part
from bpe_beam.counts.manifest import CountsManifest, CountsPart
from bpe_beam.errors import DataError, TextError
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder, as_text
from bpe_beam.storage import Storage

_ROWS = 1 << 16
"""Words that are encoded at once."""


def tallies_of_counts(
    storage: Storage,
    folder: str,
    manifest: CountsManifest,
    vocabulary: Vocabulary,
    encoder: WordEncoder,
    *,
    workers: int = 1,
    on_part: Callable[[], None] = lambda: None,
) -> dict[str | None, Tally]:
    """Return the tally of each source of a counts folder; without sources, the only key is None.

    Args:
        storage: The storage client.
        folder: The counts folder.
        manifest: Its manifest.
        vocabulary: The tokens of the tokenizer.
        encoder: The encoder of its words.
        workers: The number of threads.
        on_part: Called by a thread after each part.

    Raises:
        DataError: A part is damaged, the vocabulary lacks a symbol of a word, or a sum is beyond
            64 bits.
    """
    sources: tuple[str | None, ...] = (None,)
    if manifest.sources is not None:
        sources = tuple(manifest.sources)
    tallies = {source: Tally.empty(len(vocabulary)) for source in sources}
    lock = threading.Lock()

    def add_part(part: CountsPart) -> None:
        for source, words in read_part(storage, folder, manifest, part).items():
            for texts, counts, encoded in _encoded(words, encoder):
                if manifest.pretokenizer == "metaspace":
                    texts = as_text(texts)
                with lock:
                    tallies[source].add_words(vocabulary, texts, counts, encoded)
        on_part()

    if workers == 1:
        for part in manifest.parts:
            add_part(part)
        return tallies
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(add_part, manifest.parts):
            pass
    return tallies


def _encoded(
    words: pa.Table, encoder: WordEncoder
) -> Iterator[tuple[pa.Array, np.ndarray[tuple[int], np.dtype[np.int64]], pa.LargeListArray]]:
    """Yield words, their counts and their ids, some at a time."""
    for batch in words.select(["word", "count"]).to_batches(max_chunksize=_ROWS):
        texts = batch.column("word")
        try:
            encoded = encoder.encode(texts)
        except TextError as error:
            raise DataError(f"the word {texts[error.number].as_py()!r}: {error.reason}") from None
        yield texts, batch.column("count").to_numpy(), encoded

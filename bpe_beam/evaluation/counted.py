"""Evaluation on the words of a counts folder: seconds, whatever the corpus was.

Memory: one part of the counts for each thread, and two integers for each token of the vocabulary
and each source, `TALLY_BYTES` at most. More sources are evaluated a group at a time; each group
reads all parts, and encodes its own words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from bpe_beam.counts.artifact import read_part
from bpe_beam.counts.manifest import CountsManifest, CountsPart
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import DataError, TextError
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.storage import Storage

_ROWS = 1 << 16
"""Words that are encoded at once."""

TALLY_BYTES = 256_000_000
"""The most bytes of the tallies of a group of sources, but for a single one."""

_TOKEN_BYTES = 16
"""The bytes of a token in a tally."""


def source_groups(manifest: CountsManifest, vocab_size: int) -> list[tuple[str | None, ...]]:
    """Return the sources of a counts folder in groups that are evaluated together, sorted.

    Args:
        manifest: The manifest of the folder; without sources, the only source is None.
        vocab_size: The number of tokens of the tokenizer.
    """
    if manifest.sources is None:
        return [(None,)]
    sources = tuple(sorted(manifest.sources))
    at_once = max(1, TALLY_BYTES // (_TOKEN_BYTES * max(vocab_size, 1)))
    return [sources[start : start + at_once] for start in range(0, len(sources), at_once)]


def tallies_of_counts(
    storage: Storage,
    folder: str,
    manifest: CountsManifest,
    vocabulary: Vocabulary,
    encoder: WordEncoder,
    *,
    workers: int = 1,
    on_part: Callable[[], None] = lambda: None,
    with_tokens: bool = True,
) -> Iterator[tuple[str | None, Tally]]:
    """Yield each source of a counts folder with its tally; without sources, the only one is None.

    Args:
        storage: The storage client.
        folder: The counts folder.
        manifest: Its manifest.
        vocabulary: The tokens of the tokenizer.
        encoder: The encoder of its words.
        workers: The number of threads.
        on_part: Called by a thread after each part, for each of `source_groups`.
        with_tokens: Whether to add the words' tokens; false where those of texts are known.

    Raises:
        DataError: A part is damaged, the vocabulary lacks a symbol of a word, or a sum is beyond
            64 bits.
    """
    for group in source_groups(manifest, len(vocabulary)):
        yield from _group(
            group,
            lambda part: read_part(storage, folder, manifest, part),
            manifest.parts,
            vocabulary,
            encoder,
            workers,
            on_part,
            with_tokens,
        ).items()


def _group(
    sources: Sequence[str | None],
    read: Callable[[CountsPart], dict[str | None, pa.Table]],
    parts: Sequence[CountsPart],
    vocabulary: Vocabulary,
    encoder: WordEncoder,
    workers: int,
    on_part: Callable[[], None],
    with_tokens: bool,
) -> dict[str | None, Tally]:
    """Return the tallies of some sources."""
    tallies = {source: Tally.empty(len(vocabulary)) for source in sources}
    lock = threading.Lock()

    def add_part(part: CountsPart) -> None:
        for source, words in read(part).items():
            if source in tallies:
                for texts, counts, encoded in encoded_words(words, encoder):
                    with lock:
                        tallies[source].add_words(
                            vocabulary, texts, counts, encoded, with_tokens=with_tokens
                        )
        on_part()

    if workers == 1:
        for part in parts:
            add_part(part)
        return tallies
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(add_part, parts):
            pass
    return tallies


def tallies_in_memory(
    counts: WordCounts, vocabulary: Vocabulary, encoder: WordEncoder
) -> Iterator[tuple[str | None, Tally]]:
    """Yield each source of counts in memory with its tally; without sources, the only one is None.

    Args:
        counts: The counts.
        vocabulary: The tokens of the tokenizer.
        encoder: The encoder of their words.

    Raises:
        DataError: The vocabulary lacks a symbol of a word, or a sum is beyond 64 bits.
    """
    for source, words in counts.tables.items():
        tally = Tally.empty(len(vocabulary))
        for texts, totals, encoded in encoded_words(words, encoder):
            tally.add_words(vocabulary, texts, totals, encoded)
        yield source, tally


def encoded_words(
    words: pa.Table, encoder: WordEncoder
) -> Iterator[tuple[pa.Array, Integers, pa.LargeListArray]]:
    """Yield the texts of words, how often each occurs, and their ids, some at a time.

    Args:
        words: The columns `word` and `count`.
        encoder: Encodes them.

    Raises:
        DataError: The vocabulary lacks a symbol of a word.
    """
    for batch in words.select(["word", "count"]).to_batches(max_chunksize=_ROWS):
        own = batch.column("word")
        try:
            encoded = encoder.encode(own)
        except TextError as error:
            raise DataError(f"the word {own[error.number].as_py()!r}: {error.reason}") from None
        yield encoder.texts_of(own), batch.column("count").to_numpy(), encoded

"""Evaluation on counted words, of a counts folder or in memory: seconds, whatever the corpus was.

Memory: one part of the counts for each thread, and two integers for each token of the vocabulary
and each source, `TALLY_BYTES` at most. More sources are evaluated a group at a time; each group
reads all parts, and encodes its own words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from bpe_beam.counts.artifact import added_up, read_part
from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import DataError, TextError
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.evaluation.whole_words import WholeWords, whole_words
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.storage import Storage

_ROWS = 1 << 16
"""Words that are encoded at once."""

TALLY_BYTES = 256_000_000
"""The most bytes of the tallies of a group of sources, but for a single one."""

_TOKEN_BYTES = 16
"""The bytes of a token in a tally."""


def source_groups(manifest: CountsManifest, vocab_size: int) -> list[tuple[str | None, ...]]:
    """Return the sources of a counts folder in groups that are evaluated together, sorted."""
    if manifest.sources is None:
        return [(None,)]
    sources = tuple(sorted(manifest.sources))
    at_once = max(1, TALLY_BYTES // (_TOKEN_BYTES * max(vocab_size, 1)))
    return [sources[start : start + at_once] for start in range(0, len(sources), at_once)]


@dataclass(frozen=True)
class CountedParts:
    """Counted words in parts, each of which is read when it is needed.

    Attributes:
        manifest: The manifest of the counts.
        parts: Each returns the words of a part by source; without sources, of None.
        added_up: Each returns words of all sources; no word is in two of these tables.
        workers: The number of threads that read them.
    """

    manifest: CountsManifest
    parts: Sequence[Callable[[], Mapping[str | None, pa.Table]]]
    added_up: Sequence[Callable[[], pa.Table]]
    workers: int = 1

    @staticmethod
    def of_folder(
        storage: Storage, folder: str, manifest: CountsManifest, workers: int = 1
    ) -> CountedParts:
        """Return the words of a counts folder."""
        parts = [partial(read_part, storage, folder, manifest, part) for part in manifest.parts]

        def all_sources(read: Callable[[], Mapping[str | None, pa.Table]]) -> pa.Table:
            return added_up(read(), manifest.with_places)

        return CountedParts(manifest, parts, [partial(all_sources, one) for one in parts], workers)

    @staticmethod
    def in_memory(counts: WordCounts, workers: int = 1) -> CountedParts:
        """Return words in memory."""

        def slice_of(words: pa.Table, start: int) -> pa.Table:
            return words.slice(start, _ROWS)

        def part_of(source: str | None, words: pa.Table, start: int) -> dict[str | None, pa.Table]:
            return {source: slice_of(words, start)}

        parts = [
            partial(part_of, source, words, start)
            for source, words in counts.tables.items()
            for start in range(0, words.num_rows, _ROWS)
        ]
        every = [lambda: counts.words]
        if counts.manifest.sources is None:
            words = counts.tables[None]
            every = [partial(slice_of, words, at) for at in range(0, words.num_rows, _ROWS)]
        return CountedParts(counts.manifest, parts, every, workers)


def tallies_of_counts(
    words: CountedParts,
    vocabulary: Vocabulary,
    encoder: WordEncoder,
    *,
    on_part: Callable[[], None] = lambda: None,
    go_on: Callable[[], None] = lambda: None,
    with_tokens: bool = True,
) -> Iterator[tuple[str | None, Tally]]:
    """Yield each source of counted words with its tally; without sources, the only one is None."""
    # Fewer words are encoded in less time than the vocabulary.
    find = not with_tokens and words.manifest.unique_words > len(vocabulary)
    whole = whole_words(vocabulary, encoder) if find else None
    add_words = _adder_of_words(vocabulary, encoder, whole, with_tokens, go_on)
    for group in source_groups(words.manifest, len(vocabulary)):
        tallies = {source: Tally.empty(len(vocabulary)) for source in group}
        _add_parts(words, tallies, add_words, on_part)
        if whole is not None:
            whole.settle(tallies.values())
        yield from tallies.items()


_AddWords = Callable[[Tally, pa.Table, threading.Lock], None]
"""Adds words to a tally, which is changed with the lock."""


def _adder_of_words(
    vocabulary: Vocabulary,
    encoder: WordEncoder,
    whole: WholeWords | None,
    with_tokens: bool,
    go_on: Callable[[], None],
) -> _AddWords:
    """Return what adds words; see `tallies_of_counts`."""

    def add_encoded(tally: Tally, words: pa.Table, lock: threading.Lock) -> None:
        go_on()
        for texts, counts, encoded in encoded_words(words, encoder):
            go_on()
            with lock:
                tally.add_words(vocabulary, texts, counts, encoded, with_tokens=with_tokens)

    def add_found(tally: Tally, words: pa.Table, lock: threading.Lock) -> None:
        assert whole is not None
        for batch in _batches(words):
            go_on()
            with lock:
                texts = encoder.texts_of(batch.column("word"))
                whole.add(tally, texts, batch.column("count").to_numpy())

    return add_encoded if whole is None else add_found


def _add_parts(
    words: CountedParts,
    tallies: Mapping[str | None, Tally],
    add_words: _AddWords,
    on_part: Callable[[], None],
) -> None:
    """Add the words of some sources to their tallies."""
    lock = threading.Lock()

    def add_part(read: Callable[[], Mapping[str | None, pa.Table]]) -> None:
        for source, own in read().items():
            if source in tallies:
                add_words(tallies[source], own, lock)
        on_part()

    if words.workers == 1:
        for part in words.parts:
            add_part(part)
        return
    with ThreadPoolExecutor(words.workers) as pool:
        for _ in pool.map(add_part, words.parts):
            pass


def _batches(words: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the columns `word` and `count`, some rows at a time."""
    yield from words.select(["word", "count"]).to_batches(max_chunksize=_ROWS)


def encoded_words(
    words: pa.Table, encoder: WordEncoder
) -> Iterator[tuple[pa.Array, Integers, pa.LargeListArray]]:
    """Yield the texts of words, how often each occurs, and their ids, some at a time."""
    for batch in _batches(words):
        own = batch.column("word")
        try:
            encoded = encoder.encode(own)
        except TextError as error:
            raise DataError(f"the word {own[error.number].as_py()!r}: {error.reason}") from None
        yield encoder.texts_of(own), batch.column("count").to_numpy(), encoded

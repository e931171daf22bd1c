"""Evaluation on counted words, of a counts folder or in memory: seconds, whatever the corpus was.

Memory: one part of the counts for each thread, and two integers for each token of the vocabulary
and each source, `TALLY_BYTES` at most. More sources are evaluated a group at a time; each group
reads all parts, and encodes its own words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.counts.manifest import CountsManifest, read_manifest
from bpe_beam.counts.part_files import added_up, read_part
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import DataError, TextError
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import BPE
from bpe_beam.tokenizer.components.pretokenizers import ByteLevelPreTokenizer, Digits, Split, flat
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer

_ROWS = 1 << 16
"""Words that are encoded at once."""

TALLY_BYTES = 256_000_000
"""The maximum bytes of the tallies of a group of sources; a single source may have more."""

_TOKEN_BYTES = 16  # of a tally


def source_groups(manifest: CountsManifest, vocab_size: int) -> list[tuple[str | None, ...]]:
    """Return the sources of a counts folder in groups that are evaluated together, sorted."""
    if manifest.sources is None:
        return [(None,)]
    sources = tuple(sorted(manifest.sources))
    at_once = max(1, TALLY_BYTES // (_TOKEN_BYTES * max(vocab_size, 1)))
    return [sources[start : start + at_once] for start in range(0, len(sources), at_once)]


ReadPart: TypeAlias = Callable[[], Mapping[str | None, pa.Table]]
"""Returns the words of a part by source; without sources, of None."""

Part = TypeVar("Part")
Result = TypeVar("Result")


@dataclass(frozen=True)
class CountedParts:
    """Counted words in parts, each of which is read when it is needed.

    Each of `added_up` returns words of all sources; no word is in two of these tables.
    """

    manifest: CountsManifest
    parts: Sequence[ReadPart]
    added_up: Sequence[Callable[[], pa.Table]]
    workers: int = 1

    @staticmethod
    def of_folder(storage: Storage, folder: str, workers: int = 1) -> CountedParts:
        """Return the words of a counts folder."""
        manifest = read_manifest(storage, folder)
        parts = [partial(read_part, storage, folder, manifest, part) for part in manifest.parts]
        every = [lambda read=read: added_up(read(), manifest.with_places) for read in parts]
        return CountedParts(manifest, parts, every, workers)

    @staticmethod
    def in_memory(counts: WordCounts, workers: int = 1) -> CountedParts:
        """Return words in memory."""
        parts = [
            lambda one=source, words=words, start=start: {one: words.slice(start, _ROWS)}
            for source, words in counts.tables.items()
            for start in range(0, words.num_rows, _ROWS)
        ]
        every: list[Callable[[], pa.Table]] = [lambda: counts.words]
        if counts.manifest.sources is None:
            words = counts.tables[None]
            every = [partial(words.slice, at, _ROWS) for at in range(0, words.num_rows, _ROWS)]
        return CountedParts(counts.manifest, parts, every, workers)

    @property
    def rules(self) -> tuple[str, str]:
        """The normalizer and the pre-tokenizer of the words, by name."""
        return self.manifest.normalizer, self.manifest.pretokenizer

    def encoder(self, tokenizer: Tokenizer) -> WordEncoder:
        """Return the encoder of the words by a tokenizer."""
        return WordEncoder(tokenizer, *self.rules)

    def on_threads(self, do: Callable[[Part], Result], parts: Sequence[Part]) -> Iterator[Result]:
        """Yield what a function returns for each of `parts` or `added_up`, in their order."""
        if self.workers == 1:
            yield from map(do, parts)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            yield from pool.map(do, parts)


def tallies_of_counts(
    words: CountedParts,
    vocabulary: Vocabulary,
    *,
    on_part: Callable[[], None] = lambda: None,
    go_on: Callable[[], None] = lambda: None,
    with_tokens: bool = True,
) -> Iterator[tuple[str | None, Tally]]:
    """Yield each source of counted words with its tally; without sources, the only one is None.

    Args:
        words: The words.
        vocabulary: The tokens of the tokenizer that encodes them.
        on_part: Called after each part.
        go_on: Called before more words are encoded; an error from it ends the evaluation.
        with_tokens: Whether to count tokens; if false, only words.
    """
    encoder = words.encoder(vocabulary.tokenizer)
    # Fewer words are encoded in less time than the vocabulary.
    by_text = not with_tokens and words.manifest.unique_words > len(vocabulary)
    whole = whole_words(vocabulary, encoder) if by_text else None
    lock = threading.Lock()

    def add(tally: Tally, table: pa.Table) -> None:
        go_on()
        if whole is None:
            for texts, counts, encoded in encoded_words(table, encoder):
                go_on()
                with lock:
                    tally.add_words(vocabulary, texts, counts, encoded, with_tokens=with_tokens)
            return
        for batch in _batches(table):
            go_on()
            with lock:
                texts = encoder.texts_of(batch.column("word"))
                counts = batch.column("count").to_numpy()
                tally.add_whole_words(whole.native, texts, counts)

    def add_part(tallies: Mapping[str | None, Tally], read: ReadPart) -> None:
        for source, table in read().items():
            if source in tallies:
                add(tallies[source], table)
        on_part()

    for group in source_groups(words.manifest, len(vocabulary)):
        tallies = {source: Tally.empty(len(vocabulary)) for source in group}
        for _ in words.on_threads(partial(add_part, tallies), words.parts):
            pass
        if whole is not None:
            whole.settle(tallies.values())
        yield from tallies.items()


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


# ---- words that are one token, found by their texts ----


class WholeWords:
    """Finds words that are one token after they were added by `Tally.add_whole_words`.

    Where the tokens of every word are together the bytes of the word, a word that is one token has
    the text of that token, and a word with any other text has two or more tokens. Words with the
    text of a token are counted as that token; at the end each of these texts is encoded once, which
    tells whether it is one token.
    """

    def __init__(self, vocabulary: Vocabulary, encoder: WordEncoder) -> None:
        self._vocabulary = vocabulary
        self._encoder = encoder
        whole = ~vocabulary.partial
        texts = b"".join(compress(vocabulary.token_bytes, whole.tolist()))
        offsets = np.concatenate(([0], np.cumsum(np.where(whole, vocabulary.sizes, 0))))
        self.native = _native.WholeWords(texts, offsets)

    def settle(self, tallies: Collection[Tally]) -> None:
        """Find out which of the words with the text of a token are one token.

        Cost: the encoding of these texts, each as a word.
        """
        found = np.flatnonzero(np.any([tally.whole > 0 for tally in tallies], axis=0))
        texts = [self._vocabulary.texts[position] for position in found.tolist()]
        encoded = self._encoder.encode(pa.array(texts, pa.large_string()))
        ends = encoded.offsets.to_numpy()
        is_one = np.diff(ends) == 1
        positions = self._vocabulary.positions(encoded.values.to_numpy()[ends[:-1][is_one]])
        for tally in tallies:
            times = tally.whole[found]
            tally.whole[found] = 0
            tally.whole[positions] = times[is_one]
            tally.continued += int(times[~is_one].sum())


def whole_words(vocabulary: Vocabulary, encoder: WordEncoder) -> WholeWords | None:
    """Return what adds words by their texts; None if these do not tell which are one token."""
    if not _are_their_bytes(encoder.spec):
        return None
    unknown = vocabulary.unknown
    if unknown is not None and (text := vocabulary.texts[unknown]):
        ids = encoder.encode(pa.array([text], pa.large_string())).values.to_pylist()
        if ids == [int(vocabulary.ids[unknown])]:
            return None  # such a word is one token, but not kept whole
    return WholeWords(vocabulary, encoder)


def _are_their_bytes(spec: TokenizerSpec) -> bool:
    """Return whether the tokens of a text make up its bytes, and the bytes of `Vocabulary.texts`.

    Then a text that is not empty has a token, and none is unknown.
    """
    model = spec.model
    if spec.normalizer is not None or not isinstance(model, BPE) or not spec.model_reads_bytes:
        return False
    alphabet = byte_level.CHAR_TO_BYTE.keys()
    # Special tokens are plain text, and none of them is a token that merges make of other bytes.
    plain = all(
        token.special and (token.content.isascii() or not alphabet >= set(token.content))
        for token in spec.added_tokens
    )
    *steps, last = flat(spec.pre_tokenizer)
    return (
        plain
        and model.vocab.keys() >= alphabet
        and isinstance(last, ByteLevelPreTokenizer)
        and not last.add_prefix_space
        and all(
            isinstance(step, Digits) or (isinstance(step, Split) and step.behavior != "Removed")
            for step in steps
        )
    )

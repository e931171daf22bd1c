"""Counted words, gathered for a trainer, and the limits of one trainer.

A trainer keeps every unique word in memory: see `memory_needed`. Nothing else grows with the
corpus. Its array of words has a position for each symbol, or, where it gets the number of
characters that each symbol covers, for each character; and one between words. Positions have 32
bits (native/learn/merge_table.hpp).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.counts.word_table import schema_of, string_buffers, weighted_total
from bpe_beam.errors import UsageError, require
from bpe_beam.training.recipe import BpeRecipe, Recipe, UnigramRecipe, WordLevelRecipe

# The most that natural text and random bytes take, with vocabularies of 32,000 to 1,000,000: most
# of it is for pairs. If merges go on until the best pair occurs once or twice, all pairs are
# listed, and random bytes make nearly as many different pairs as they have symbols. Natural text
# takes less than half. benchmarks/memory.py measures it.
BYTES_PER_SYMBOL = 60
BYTES_PER_WORD = 60
BYTES_PER_ENTRY = 750

# The most that words of natural text take as Unigram, themselves included: an offset, a count and a
# segment each, their bytes, and at a time the positions that begin with some pairs of characters.
# These are up to 16 bytes a byte if few pairs are all there are. benchmarks/memory.py measures it.
BYTES_PER_SEGMENTED_WORD = 40
BYTES_IN_SEGMENTS = 3
BYTES_PER_SEED = 300

MAX_POSITIONS = _native.MAX_POSITIONS

DRIVER_SHARE = 2
"""Segments may take the driver's memory over this; the rest is for Python, Beam, and the
vocabulary."""

BYTES_PER_TOKEN = 120
"""Segments have tokens as symbols: fewer than the characters, and their pairs differ more."""

_BYTES_PER_POSITION = 8


class Words(msgspec.Struct, frozen=True):
    """Unique words one after another: word i is data[offsets[i]:offsets[i + 1]]."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def word(self, number: int) -> bytes:
        """Return a word."""
        return self.data[self.offsets[number] : self.offsets[number + 1]].tobytes()

    @property
    def total(self) -> int:
        """The number of words, each counted as often as it occurs."""
        return weighted_total(np.ones_like(self.counts), self.counts)

    @property
    def total_bytes(self) -> int:
        """Bytes of all words, each weighted by its count."""
        return weighted_total(np.diff(self.offsets), self.counts)


def memory_needed(word_bytes: int, unique_words: int, recipe: Recipe) -> int:
    """Return an estimate of the bytes that learning from words of natural text takes at most."""
    if isinstance(recipe, UnigramRecipe):
        seeds = BYTES_PER_SEED * min(recipe.seed_size, word_bytes)
        words = BYTES_IN_SEGMENTS * word_bytes + BYTES_PER_SEGMENTED_WORD * unique_words
        return words + seeds
    words = BYTES_PER_SYMBOL * word_bytes + BYTES_PER_WORD * unique_words
    return words + BYTES_PER_ENTRY * min(recipe.vocab_size, word_bytes)


class Size(NamedTuple):
    """The size of words, or segments, that a trainer learns from.

    `width` is the number of characters that the symbols cover, if the trainer gets it; else as
    `symbols`.
    """

    words: int
    symbols: int
    width: int

    @property
    def positions(self) -> int:
        """Number of positions in the trainer's array."""
        return self.words + 1 + self.width

    @property
    def memory(self) -> int:
        """An upper estimate of the bytes that a trainer takes, without the vocabulary."""
        return (
            BYTES_PER_TOKEN * self.symbols
            + BYTES_PER_WORD * self.words
            + _BYTES_PER_POSITION * (self.width - self.symbols)
        )


class Room(msgspec.Struct, frozen=True):
    """The limits of one trainer: bytes of memory, and positions in its array."""

    memory: int
    positions: int = msgspec.field(default_factory=lambda: MAX_POSITIONS)

    def fits(self, size: Size) -> bool:
        """Return whether words of a size fit the limits."""
        return size.memory <= self.memory and size.positions <= self.positions


def too_many(
    recipe: Recipe, word_bytes: int, unique_words: int, *, continued: bool
) -> tuple[int, bool] | None:
    """Return the maximum of positions if words may need more, and whether they certainly do.

    None if they fit, by the figures of their counts.
    """
    if isinstance(recipe, WordLevelRecipe | UnigramRecipe):
        return None
    bpe = recipe if isinstance(recipe, BpeRecipe) else None
    ends = unique_words if bpe and bpe.end_of_word_symbol else 0
    if Size(unique_words, word_bytes, word_bytes + ends).positions <= MAX_POSITIONS:
        return None
    in_bytes = bpe is not None and bpe.symbols == "bytes"
    kept = bpe is not None and bpe.limit_alphabet is None
    return MAX_POSITIONS, in_bytes and kept and not continued


def require_positions(size: Size) -> None:
    """Refuse words that are too many for one trainer."""
    require(
        size.positions <= MAX_POSITIONS,
        f"the words have {size.positions:,} symbols and ends, and one trainer can process "
        f"{MAX_POSITIONS:,}",
        remedy="set {merge_rounds} to distributed, or use fewer words",
    )


def gather_words(tables: Iterable[pa.Table | pa.RecordBatch], in_order_of_place: bool) -> Words:
    """Return counted words as one sequence; without a copy of all, but for the order of place."""
    if in_order_of_place:
        tables = [_sorted_by_place(tables)]
    data, ends, counts = bytearray(), bytearray(8), bytearray()
    for table in tables:
        for batch in table.to_batches() if isinstance(table, pa.Table) else [table]:
            text, bounds = string_buffers(batch.column("word"))
            ends.extend(memoryview(bounds[1:] + (len(data) - bounds[0])))
            data.extend(memoryview(text)[bounds[0] : bounds[-1]])
            counts.extend(memoryview(batch.column("count").to_numpy()))
    columns = np.frombuffer(data, np.uint8), np.frombuffer(ends, np.int64)
    return Words(*columns, np.frombuffer(counts, np.int64))


def _sorted_by_place(tables: Iterable[pa.Table | pa.RecordBatch]) -> pa.Table:
    every = [
        pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        for table in tables
    ]
    table = pa.concat_tables(every) if every else schema_of(with_places=True).empty_table()
    if "first_document" not in table.schema.names:
        raise UsageError(
            "cannot be first_seen: these counts do not have the position where each word "
            "occurred first",
            ("tie_break",),
            "train from the corpus itself, or count again with {tie_break} first_seen",
        )
    return table.sort_by([("first_document", "ascending"), ("first_word", "ascending")])


def first_word_with(words: Words, data: bytes) -> bytes | None:
    """Return the first word that contains some bytes; None if there is none."""
    pattern = re.compile(re.escape(data))
    start = 0
    while (match := pattern.search(words.data.data, start)) is not None:
        word = int(np.searchsorted(words.offsets, match.start(), side="right")) - 1
        if match.end() <= words.offsets[word + 1]:
            return words.word(word)
        start = match.start() + 1
    return None

"""The limits of one trainer: its memory, and the positions in its array of words.

The array has a position for each symbol, or, where the trainer gets the number of characters that
each symbol covers, for each character; and one between words. Positions have 32 bits
(native/learn/merge_table.hpp). Who decides where words are learned from asks here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpe_beam import _native
from bpe_beam.training.merges.symbols import WordSymbols, spelling_of
from bpe_beam.training.merges.words import BYTES_PER_WORD
from bpe_beam.training.recipe import Recipe, WordLevelRecipe

MAX_POSITIONS = _native.MAX_POSITIONS

DRIVER_SHARE = 2
"""Segments may take the driver's memory over this; the rest is for Python, Beam, and the
vocabulary."""

BYTES_PER_TOKEN = 120
"""Segments have tokens as symbols: fewer than the characters, and their pairs differ more."""

_BYTES_PER_POSITION = 8


class Size(NamedTuple):
    """The size of words that a trainer learns from.

    Attributes:
        words: Number of words, or segments.
        width: Number of characters that the symbols cover, if the trainer gets it; else as
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


def size_of(words: WordSymbols) -> Size:
    """Return the size of words or segments."""
    spans = words.spans
    width = len(words.ids) if spans is None else int(spans.sum(dtype=np.int64))
    return Size(len(words.counts), len(words.ids), width)


@dataclass(frozen=True)
class Room:
    """The limits of one trainer: bytes of memory, and positions in its array."""

    memory: int
    positions: int

    def fits(self, size: Size) -> bool:
        """Return whether words of a size fit the limits."""
        return size.memory <= self.memory and size.positions <= self.positions


def too_many(
    recipe: Recipe, word_bytes: int, unique_words: int, *, continued: bool
) -> tuple[int, bool] | None:
    """Return the maximum of positions if words may need more, and whether they certainly do.

    None if they fit, by the figures of their counts.
    """
    if isinstance(recipe, WordLevelRecipe):
        return None
    spelling = spelling_of(recipe)
    ends = unique_words if spelling.end_symbol else 0
    if Size(unique_words, word_bytes, word_bytes + ends).positions <= MAX_POSITIONS:
        return None
    return MAX_POSITIONS, spelling.in_bytes and recipe.limit_alphabet is None and not continued

"""What one learner can hold: so much memory, and so many positions in its array of words.

The array has a position for each symbol, or, where the learner is told how many characters each
symbol covers, for each character; and one between words. Positions have 32 bits, and 31 where each
also knows the span of its token (native/learn/merge_table.hpp). Whoever decides where words are
learned from asks here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bpe_beam import _native
from bpe_beam.training.recipe import BpeRecipe, WordLevelRecipe, WordPieceRecipe
from bpe_beam.training.words import memory_of_tokens

MAX_POSITIONS = _native.MAX_POSITIONS
MAX_SPANNED_POSITIONS = _native.MAX_SPANNED_POSITIONS

DRIVER_SHARE = 2
"""What segments may take is the driver's memory over this; the rest is for Python, Beam, and the
vocabulary."""

_BYTES_PER_POSITION = 12


class Size(NamedTuple):
    """How much there is to learn from.

    Attributes:
        words: Words, or segments.
        symbols: Their symbols.
        width: The characters that these cover, where the learner is told; else as `symbols`.
    """

    words: int
    symbols: int
    width: int

    @property
    def positions(self) -> int:
        """The positions in the learner's array."""
        return self.words + 1 + self.width

    @property
    def memory(self) -> int:
        """An upper estimate of the bytes that a learner takes, but for the vocabulary."""
        more = _BYTES_PER_POSITION * (self.width - self.symbols)
        return memory_of_tokens(self.symbols, self.words) + more


@dataclass(frozen=True)
class Room:
    """The limits of one learner.

    Attributes:
        memory: Bytes.
        positions: Positions in its array.
    """

    memory: int
    positions: int

    def holds(self, size: Size) -> bool:
        """Whether so much can be learned from."""
        return size.memory <= self.memory and size.positions <= self.positions


def has_spans(recipe: BpeRecipe | WordPieceRecipe, *, continued: bool, widths: bool) -> bool:
    """Whether the learner keeps the span of each token, which takes the highest bit.

    Args:
        recipe: The settings.
        continued: A tokenizer is continued.
        widths: The learner is told how many characters each symbol covers.
    """
    decorated = isinstance(recipe, WordPieceRecipe) or recipe.end_of_word_suffix
    return bool(decorated or recipe.continuing_subword_prefix or continued or widths)


def most_positions(with_spans: bool) -> int:
    """The positions that a learner can have."""
    return MAX_SPANNED_POSITIONS if with_spans else MAX_POSITIONS


def too_many(
    recipe: BpeRecipe | WordPieceRecipe | WordLevelRecipe,
    word_bytes: int,
    unique_words: int,
    *,
    continued: bool,
) -> tuple[int, bool] | None:
    """Tell whether words may be too many for one learner, from what counts know of them.

    Args:
        recipe: The settings.
        word_bytes: The bytes of all unique words.
        unique_words: How many these are.
        continued: A tokenizer is continued.

    Returns:
        None: they are not. Else the most positions there can be, and whether the words have more
        for sure: of bytes there are as many as symbols, of characters there may be fewer.
    """
    if isinstance(recipe, WordLevelRecipe):
        return None
    ends = unique_words if isinstance(recipe, BpeRecipe) and recipe.end_of_word_symbol else 0
    most = most_positions(has_spans(recipe, continued=continued, widths=False))
    if Size(unique_words, word_bytes, word_bytes + ends).positions <= most:
        return None
    in_bytes = isinstance(recipe, BpeRecipe) and recipe.symbols == "bytes"
    return most, in_bytes and recipe.limit_alphabet is None and not continued

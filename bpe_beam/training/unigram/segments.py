"""From counted words to the characters of a vocabulary of pieces, and to segments of the words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

import msgspec
import numpy as np

from bpe_beam import _native
from bpe_beam.counts.weights import MAX_TOTAL
from bpe_beam.errors import DataError, UsageError
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import PieceRecipe

_OF_BYTE_TOKENS = "<>x0123456789ABCDEF"
"""The characters of the tokens of bytes. They are kept with `byte_fallback`: their own pieces then
spell the text of such a token, which other programs would take for the byte."""


class Alphabet(NamedTuple):
    """The characters that become pieces, by code point, and how often each occurs."""

    characters: dict[str, int]

    @property
    def points(self) -> np.ndarray:
        """The code points, uint32."""
        return np.array([ord(character) for character in self.characters], np.uint32)

    @property
    def counts(self) -> np.ndarray:
        """How often each occurs, int64."""
        return np.array(list(self.characters.values()), np.int64)


def kept_characters(words: Words, recipe: PieceRecipe) -> Alphabet:
    """Return the characters that become pieces; the vocabulary has room for them."""
    points, numbers = _native.count_characters(words.data, words.offsets, words.counts)
    return chosen_characters(
        dict(zip(map(chr, points.tolist()), numbers.tolist(), strict=True)), recipe
    )


def chosen_characters(counts: Mapping[str, int], recipe: PieceRecipe) -> Alphabet:
    """Return the characters that become pieces, from all characters with their counts."""
    if not counts:
        raise DataError("there are no words to train from")
    total, covered, kept = sum(counts.values()), 0, set()
    if total > MAX_TOTAL:
        raise OverflowError("all characters of all words occur 2^63 times or more")
    coverage = Fraction(recipe.character_coverage)
    for character in sorted(counts, key=lambda one: (-counts[one], one)):
        if covered >= coverage * total:
            break
        covered += counts[character]
        kept.add(character)
    kept.update(recipe.initial_alphabet, _OF_BYTE_TOKENS if recipe.byte_fallback else "")
    entries = len(recipe.reserved) + len(kept)
    if entries > recipe.vocab_size:
        raise UsageError(
            f"must be at least {entries:,} (the special tokens and the characters alone), got "
            f"{recipe.vocab_size:,}",
            ("vocab_size",),
            "or keep fewer characters with a smaller {character_coverage}",
        )
    return Alphabet({character: counts.get(character, 0) for character in sorted(kept)})


class SegmentRules(msgspec.Struct, frozen=True):
    """The rules by which words are cut into segments, which no piece leaves.

    Attributes:
        characters: The characters that become pieces.
        by_script: Whether to cut between characters of different scripts.
    """

    characters: str
    by_script: bool

    @property
    def _kept(self) -> np.ndarray:
        return np.frombuffer(self.characters.encode("utf-32-le"), np.uint32)

    def segments(self, words: Words) -> _native.Segments:
        """Return the segments of words."""
        return _native.Segments(words.data, words.offsets, words.counts, self._kept, self.by_script)

    def same_segments(self, segments: Words) -> _native.Segments:
        """Return segments that were cut before, without the characters after them."""
        columns = (segments.data, segments.offsets, segments.counts)
        return _native.Segments(*columns, self._kept, by_script=False, max_characters=1 << 62)


def rules_of(characters: Iterable[str], recipe: PieceRecipe) -> SegmentRules:
    """Return the rules for the words of a recipe."""
    return SegmentRules("".join(characters), recipe.split_by_unicode_script)


def segments_of(words: Words, alphabet: Alphabet, recipe: PieceRecipe) -> _native.Segments:
    """Return the segments of words."""
    return rules_of(alphabet.characters, recipe).segments(words)

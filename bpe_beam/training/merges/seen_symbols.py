"""The symbols that words have, collected from slices of the words and merged."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated

import msgspec
import numpy as np
from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.symbols import KINDS, Spelling, StoredSymbols, chunks, spelling_of
from bpe_beam.training.merges.words import Words, first_word_with
from bpe_beam.training.recipe import MergingRecipe, Recipe

_LOW_BITS = 0xFFFFFFFF

_Count = Annotated[int, msgspec.Meta(ge=0)]


class SeenSymbols(StoredSymbols, frozen=True):
    """The symbols that words have.

    Attributes:
        spelling: How words are written.
        kinds: The kinds of the symbols of each character: bit k is set for kind k.
        counts: How often each character occurs, words weighted by their counts; None: not counted.
    """

    spelling: Spelling
    kinds: dict[str, _Count]
    counts: dict[str, _Count] | None = None

    def __post_init__(self) -> None:
        strange = next((text for text in self.kinds if not self.spelling.has_code(text)), None)
        if strange is not None:
            raise ValueError(f"{strange[:40]!r} is not a character of these words")
        if self.counts is not None and self.counts.keys() != self.kinds.keys():
            raise ValueError("the counted characters are not those that were seen")

    def symbols(self, kept: Iterable[str]) -> set[str]:
        """Return the symbols whose characters are kept."""
        return {
            self.spelling.symbol(character, kind)
            for character in kept
            for kind in self.spelling.kinds
            if self.kinds.get(character, 0) >> kind & 1
        }

    def alphabet(self, initial: Collection[str], limit: int | None) -> list[str]:
        """Return the characters of the vocabulary by code point."""
        counts = self.counts or {}

        def rank(character: str) -> tuple[bool, int, str]:
            is_seen = character not in initial
            return is_seen, -counts[character] if is_seen else 0, character

        characters = self.kinds.keys() | initial
        if limit is None or limit >= len(characters):
            return sorted(characters)
        return sorted(sorted(characters, key=rank)[:limit])

    def merged(self, other: SeenSymbols) -> SeenSymbols:
        """Return the symbols of the words of both."""
        if self.spelling != other.spelling or (self.counts is None) != (other.counts is None):
            raise ValueError("symbols that were collected differently")
        kinds = {
            character: self.kinds.get(character, 0) | other.kinds.get(character, 0)
            for character in self.kinds.keys() | other.kinds
        }
        if self.counts is None or other.counts is None:
            return SeenSymbols(self.spelling, kinds)
        counts = {c: self.counts.get(c, 0) + other.counts.get(c, 0) for c in kinds}
        return SeenSymbols(self.spelling, kinds, counts)


def find_symbols(words: Words, recipe: MergingRecipe) -> SeenSymbols:
    """Return the symbols of words, for `begin_vocabulary`; several can be `merged`.

    For characters this takes 20 MB, besides the memory of `chunks`.
    """
    spelling = spelling_of(recipe)
    symbol = spelling.end_symbol
    word = first_word_with(words, symbol.encode()) if symbol else None
    if word is not None:
        raise UsageError(
            f"must be a character that the text does not have, got {symbol!r}, which the word "
            f"{word.decode()[:100]!r} has",
            ("end_of_word_symbol",),
        )
    with_counts = recipe.limit_alphabet is not None
    kinds = np.zeros(spelling.codes, np.uint8)
    low, high = np.zeros((2, spelling.codes), np.int64)
    for chunk in chunks(words, spelling):
        for kind in range(KINDS):
            kinds[chunk.codes[chunk.kinds == kind]] |= np.uint8(1 << kind)
        if with_counts:
            weights = np.repeat(chunk.counts, np.diff(chunk.offsets))
            # In halves, whose sums stay within 64 bits.
            np.add.at(low, chunk.codes, weights & _LOW_BITS)
            np.add.at(high, chunk.codes, weights >> 32)
    codes = np.flatnonzero(kinds).tolist()
    seen = SeenSymbols(spelling, {spelling.character(code): int(kinds[code]) for code in codes})
    if not with_counts:
        return seen
    totals = [int(low[code]) + (int(high[code]) << 32) for code in codes]
    return replace(seen, counts=dict(zip(seen.kinds, totals, strict=True)))


def ambiguous_tokens(recipe: Recipe, base_tokenizer: Tokenizer | None = None) -> tuple[str, ...]:
    """Return the special and added tokens whose bytes words must not contain.

    `Ġthe` as a special token and `Ġthe`, as a merge makes it of the bytes of ` the`, would be one
    entry with two meanings. No merge makes bytes that no word contains.
    """
    if not spelling_of(recipe).in_bytes:
        return ()
    added = () if base_tokenizer is None else base_tokenizer.spec.added_tokens
    tokens = dict.fromkeys((*recipe.specials, *(token.content for token in added)))
    return tuple(filter(byte_level.is_ambiguous, tokens))


def refuse_spelled(words: Words, tokens: tuple[str, ...]) -> None:
    """Refuse words that contain the bytes of ambiguous tokens."""
    for token in tokens:
        data = byte_level.to_bytes(token)
        if first_word_with(words, data) is not None:
            raise UsageError(
                f"must not contain {token!r}, which is also how the bytes {data!r} are written in "
                "the byte-level alphabet, and words of the text contain these",
                ("special_tokens",),
                "choose another text",
            )

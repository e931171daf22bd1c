"""Words as the symbols that a trainer begins with: characters or bytes, decorated or not.

A symbol's *code* is its code point, or its byte. Words are read in chunks of at most `CHUNK_BYTES`
(or one word that is longer), which takes about 20 bytes of memory for each byte of a chunk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from bpe_beam import json_structs
from bpe_beam.counts.word_table import code_points
from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.words import Size, Words, first_word_with
from bpe_beam.training.recipe import BpeRecipe, MergingRecipe, Recipe

if TYPE_CHECKING:
    from typing_extensions import Self

CHUNK_BYTES = 1 << 22

# The kinds of a symbol by its decoration, as bits.
PLAIN, CONTINUING, LAST = 0, 1, 2
KINDS = 4

_CHARACTERS = 0x110000
_LOW_BITS = 0xFFFFFFFF

_Count = Annotated[int, msgspec.Meta(ge=0)]


def _read_tokenizer(_: type, text: object) -> Tokenizer:
    if not isinstance(text, str):
        raise ValueError(f"must be a text, got {shortened(text)}")
    return Tokenizer.from_json(text)


class StoredSymbols(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A struct that workers and the driver of merge rounds exchange, as JSON."""

    def to_bytes(self) -> bytes:
        """Return the JSON; equal values give equal bytes."""
        return msgspec.json.encode(self, enc_hook=Tokenizer.to_json, order="sorted")

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "JSON") -> Self:
        """Return what `to_bytes` wrote."""
        try:
            return json_structs.decode(data, cls, dec_hook=_read_tokenizer)
        except ValueError as error:
            raise DataError(f"{source}: {error}") from None


class Spelling(StoredSymbols, frozen=True):
    """The rule by which words become symbols.

    Attributes:
        in_bytes: Whether symbols are bytes, in the byte-level alphabet.
        prefix: Put before every character of a word but the first; empty: none.
        suffix: Put after the last character of a word; empty: none.
        end_symbol: A character put after every word; empty: none.
    """

    in_bytes: bool
    prefix: str
    suffix: str
    end_symbol: Annotated[str, msgspec.Meta(max_length=1)]

    @property
    def codes(self) -> int:
        """One more than the greatest code."""
        return 256 if self.in_bytes else _CHARACTERS

    @property
    def kinds(self) -> tuple[int, ...]:
        """The kinds of symbols that words can have."""
        kinds = [PLAIN]
        if self.prefix:
            kinds.append(CONTINUING)
        if self.suffix:
            kinds += [kind | LAST for kind in kinds]
        return tuple(kinds)

    def character(self, code: int) -> str:
        """Return the character of a code, undecorated."""
        return byte_level.BYTE_TO_CHAR[code] if self.in_bytes else chr(code)

    def code(self, character: str) -> int:
        """Return the code of a character of the vocabulary."""
        return byte_level.to_bytes(character)[0] if self.in_bytes else ord(character)

    def has_code(self, text: str) -> bool:
        """Return whether a token is a single character of this spelling, and so has a code."""
        return len(text) == 1 and (not self.in_bytes or byte_level.is_byte_level(text))

    def symbol(self, character: str, kind: int) -> str:
        """Return the symbol of a character."""
        before = self.prefix if kind & CONTINUING else ""
        return before + character + (self.suffix if kind & LAST else "")


def spelling_of(recipe: Recipe) -> Spelling:
    """Return how the words of a recipe are written as symbols."""
    prefix = recipe.continuing_subword_prefix if isinstance(recipe, MergingRecipe) else ""
    if not isinstance(recipe, BpeRecipe):
        return Spelling(False, prefix, "", "")
    in_bytes = recipe.symbols == "bytes"
    return Spelling(in_bytes, prefix, recipe.end_of_word_suffix, recipe.end_of_word_symbol)


class WordSymbols(NamedTuple):
    """Words, or segments of words, as a trainer reads them.

    Attributes:
        ids: uint32, the symbols of all words, one after another.
        offsets: int64[words + 1], the begin of each word, and the end of the last.
        counts: int64[words], how often each word occurs.
        spans: uint32, how many characters each symbol covers; None: one each.
    """

    ids: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    spans: npt.NDArray[np.uint32] | None = None

    @property
    def size(self) -> Size:
        """The size of the words."""
        spans = self.spans
        width = len(self.ids) if spans is None else int(spans.sum(dtype=np.int64))
        return Size(len(self.counts), len(self.ids), width)


class WordChunk(NamedTuple):
    """Some words: their symbols' codes (uint8 or uint32) and kinds (or the one kind of all).

    `offsets` are the begin of each word in `codes`, and the end of the last.
    """

    codes: npt.NDArray[np.unsignedinteger]
    kinds: npt.NDArray[np.uint8] | int
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def chunks(words: Words, spelling: Spelling) -> Iterator[WordChunk]:
    """Yield words in their order, `CHUNK_BYTES` or one word at once."""
    begin = 0
    while begin < len(words.counts):
        limit = words.offsets[begin] + CHUNK_BYTES
        end = int(np.searchsorted(words.offsets, limit, side="right")) - 1
        end = min(max(end, begin + 1), len(words.counts))
        yield _chunk(words, begin, end, spelling)
        begin = end


def _chunk(words: Words, begin: int, end: int, spelling: Spelling) -> WordChunk:
    offsets = words.offsets[begin : end + 1] - words.offsets[begin]
    data = words.data[words.offsets[begin] : words.offsets[end]]
    counts = words.counts[begin:end]
    if spelling.in_bytes:
        return WordChunk(data, PLAIN, offsets, counts)
    codes, offsets = code_points(data, offsets)
    if spelling.end_symbol:
        codes = np.insert(codes, offsets[1:], ord(spelling.end_symbol))
        offsets = offsets + np.arange(end - begin + 1)
    return WordChunk(codes, _kinds(offsets, spelling), offsets, counts)


def _kinds(offsets: npt.NDArray[np.int64], spelling: Spelling) -> npt.NDArray[np.uint8] | int:
    """Return the kind of each symbol of words, or the one kind of all."""
    if not spelling.prefix and not spelling.suffix:
        return PLAIN
    starts, ends = offsets[:-1], offsets[1:]
    full = ends > starts
    kinds = np.full(offsets[-1], CONTINUING if spelling.prefix else PLAIN, np.uint8)
    kinds[starts[full]] = PLAIN
    if spelling.suffix:
        kinds[ends[full] - 1] |= LAST
    return kinds


def sums(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return how many flags are set before each position, and in total."""
    return np.concatenate([[0], np.cumsum(flags)])


# ---- the symbols that words have, collected from slices of the words and merged ----


class SeenSymbols(StoredSymbols, frozen=True):
    """The symbols that words have.

    Attributes:
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

"""Words as the symbols that a trainer begins with: characters or bytes, decorated or not.

A symbol's *code* is its code point, or its byte. Words are read in chunks of at most `CHUNK_BYTES`
(or one word that is longer), which takes about 20 bytes of memory for each byte of a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from bpe_beam import json_structs
from bpe_beam.errors import DataError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe

if TYPE_CHECKING:
    from typing_extensions import Self

CHUNK_BYTES = 1 << 22

# The kinds of a symbol by its decoration, as bits.
PLAIN, CONTINUING, LAST = 0, 1, 2
KINDS = 4

_CHARACTERS = 0x110000


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
    prefix = "" if isinstance(recipe, WordLevelRecipe) else recipe.continuing_subword_prefix
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


class WordChunk(NamedTuple):
    """Some words.

    Attributes:
        codes: uint8 or uint32, the codes of their symbols.
        kinds: The kind of each symbol, or the one kind of all symbols.
        offsets: int64[words + 1], the begin of each word in `codes`, and the end of the last.
        counts: int64[words].
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
    codes = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
    offsets = sums((data & 0xC0) != 0x80)[offsets]  # of bytes that begin a character
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

"""Words as the symbols that a learner begins with: characters or bytes, decorated or not.

A symbol's *code* is its code point, or its byte. Words are read in pieces of at most `PIECE_BYTES`
(or one word that is longer); beside the result, 4 bytes a symbol and 8 a word, that takes about 20
bytes for each byte of a piece, and 18 MB of ids for characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpe_beam.errors import DataError
from bpe_beam.tokenizer import byte_level
from bpe_beam.training.words import Words

PIECE_BYTES = 1 << 22
NO_ID = 0xFFFFFFFF

_CHARACTERS = 0x110000

# How a character stands in its word: kinds of decoration, as bits.
PLAIN, CONTINUING, LAST = 0, 1, 2


@dataclass(frozen=True)
class Spelling:
    """How words are written as symbols.

    Attributes:
        in_bytes: Symbols are bytes, in the byte-level alphabet.
        prefix: Stands before every character of a word but the first.
        suffix: Stands after the last character of a word.
        end_symbol: A character that stands after every word.
    """

    in_bytes: bool
    prefix: str = ""
    suffix: str = ""
    end_symbol: str = ""

    @property
    def codes(self) -> int:
        """How many codes there can be."""
        return 256 if self.in_bytes else _CHARACTERS

    @property
    def kinds(self) -> tuple[int, ...]:
        """The kinds of decoration that occur."""
        kinds = [PLAIN]
        if self.prefix:
            kinds.append(CONTINUING)
        if self.suffix:
            kinds += [kind | LAST for kind in kinds]
        return tuple(kinds)

    def character(self, code: int) -> str:
        """What stands for a code, undecorated."""
        return byte_level.BYTE_TO_CHAR[code] if self.in_bytes else chr(code)

    def code(self, character: str) -> int:
        """The code of a character of the vocabulary."""
        return byte_level.to_bytes(character)[0] if self.in_bytes else ord(character)

    def has_code(self, text: str) -> bool:
        """Whether a token is a single character of this spelling, and so has a code."""
        return len(text) == 1 and (not self.in_bytes or byte_level.is_byte_level(text))

    def symbol(self, character: str, kind: int) -> str:
        """A character as it stands in a word."""
        before = self.prefix if kind & CONTINUING else ""
        return before + character + (self.suffix if kind & LAST else "")


def id_table(
    spelling: Spelling, ids: Mapping[str, int], kept: Iterable[str]
) -> npt.NDArray[np.uint32]:
    """The ids of symbols: uint32[4, codes], by kind of decoration and code.

    NO_ID stands where a symbol has no id, and for every character that is not among `kept`.
    """
    table = np.full((4, spelling.codes), NO_ID, np.uint32)
    for character in kept:
        if not spelling.has_code(character):
            continue
        code = spelling.code(character)
        for kind in spelling.kinds:
            table[kind, code] = ids.get(spelling.symbol(character, kind), NO_ID)
    return table


def spell(
    words: Words, spelling: Spelling, table: npt.NDArray[np.uint32], cut: bool
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """The words' symbols by id, one after another, and where each word begins and the last ends.

    Which character is a word's first and which its last is decided before any is left out.

    Args:
        words: Any words.
        spelling: How they are written.
        table: As `id_table` gives it.
        cut: Symbols without an id are left out; else there must be none.

    Raises:
        DataError: A word holds a symbol that has no id, and nothing may be cut.
    """
    if spelling.in_bytes:
        plain = table[PLAIN][words.data]
        if plain.max(initial=0) != NO_ID:
            return plain, words.offsets
        del plain
    symbols = np.empty(_count_symbols(words, spelling), np.uint32)
    offsets = np.zeros(len(words.counts) + 1, np.int64)
    end = word = 0
    for piece in pieces(words, spelling):
        kinds = piece.kinds(spelling)
        those = table[PLAIN][piece.codes] if kinds is None else table[kinds, piece.codes]
        known = those != NO_ID
        if not cut and not known.all():
            strange = spelling.character(int(piece.codes[~known][0]))
            raise DataError(
                f"a word holds {strange!r}, which no word held when the vocabulary was begun: the "
                "counts have changed since; begin anew"
            )
        ends = np.concatenate([[0], np.cumsum(known)])[piece.offsets]
        those = those[known]
        symbols[end : end + len(those)] = those
        offsets[word : word + len(ends)] = ends + end
        end += len(those)
        word += len(ends) - 1
    return symbols[:end], offsets


def _count_symbols(words: Words, spelling: Spelling) -> int:
    """How many symbols the words have before any is cut."""
    if spelling.in_bytes:
        return len(words.data)
    count = len(words.counts) if spelling.end_symbol else 0
    for begin in range(0, len(words.data), PIECE_BYTES):
        data = words.data[begin : begin + PIECE_BYTES]
        count += int(np.count_nonzero((data & 0xC0) != 0x80))
    return count


@dataclass(frozen=True)
class Piece:
    """Some words.

    Attributes:
        codes: Their symbols' codes.
        offsets: int64[words + 1], where each word begins in `codes`.
        counts: int64[words].
    """

    codes: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def kinds(self, spelling: Spelling) -> npt.NDArray[np.uint8] | None:
        """How each symbol is decorated; None: none is."""
        if not spelling.prefix and not spelling.suffix:
            return None
        starts, ends = self.offsets[:-1], self.offsets[1:]
        full = ends > starts
        kinds = np.zeros(len(self.codes), np.uint8)
        if spelling.prefix:
            kinds |= CONTINUING
            kinds[starts[full]] &= 0xFF - CONTINUING
        if spelling.suffix:
            kinds[ends[full] - 1] |= LAST
        return kinds


def pieces(words: Words, spelling: Spelling) -> Iterator[Piece]:
    """The words in their order, as many at once as have `PIECE_BYTES`."""
    begin = 0
    while begin < len(words.counts):
        room = words.offsets[begin] + PIECE_BYTES
        end = int(np.searchsorted(words.offsets, room, side="right")) - 1
        end = min(max(end, begin + 1), len(words.counts))
        yield _piece(words, begin, end, spelling)
        begin = end


def _piece(words: Words, begin: int, end: int, spelling: Spelling) -> Piece:
    offsets = words.offsets[begin : end + 1] - words.offsets[begin]
    data = words.data[words.offsets[begin] : words.offsets[end]]
    counts = words.counts[begin:end]
    if spelling.in_bytes:
        return Piece(data, offsets, counts)
    codes = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
    # A byte that continues a character begins none.
    begun = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])
    offsets = begun[offsets]
    if spelling.end_symbol:
        ends = offsets[1:] + np.arange(end - begin)
        longer = np.empty(len(codes) + end - begin, np.uint32)
        is_end = np.zeros(len(longer), np.bool_)
        is_end[ends] = True
        longer[~is_end] = codes
        longer[is_end] = ord(spelling.end_symbol)
        codes = longer
        offsets = offsets + np.arange(end - begin + 1)
    return Piece(codes, offsets, counts)

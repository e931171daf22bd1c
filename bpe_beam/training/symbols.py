"""Words as the symbols that a learner begins with: characters or bytes, decorated or not.

A symbol's *code* is its code point, or its byte. Words are read in pieces of at most `PIECE_BYTES`
(or one word that is longer); beside the result, 4 bytes a symbol and 8 a word, that takes about 20
bytes for each byte of a piece, and 70 MB of tables for characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer import byte_level
from bpe_beam.training.words import Words

PIECE_BYTES = 1 << 22
NO_ID = 0xFFFFFFFF

_CHARACTERS = 0x110000
_LOW_BITS = (1 << 21) - 1

# How a character stands in its word: kinds of decoration, as bits.
_PLAIN, _CONTINUING, _LAST = 0, 1, 2


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
        kinds = [_PLAIN]
        if self.prefix:
            kinds.append(_CONTINUING)
        if self.suffix:
            kinds += [kind | _LAST for kind in kinds]
        return tuple(kinds)

    def character(self, code: int) -> str:
        """What stands for a code, undecorated."""
        return byte_level.BYTE_TO_CHAR[code] if self.in_bytes else chr(code)

    def code(self, character: str) -> int:
        """The code of a character of the vocabulary."""
        return byte_level.to_bytes(character)[0] if self.in_bytes else ord(character)

    def symbol(self, character: str, kind: int) -> str:
        """A character as it stands in a word."""
        before = self.prefix if kind & _CONTINUING else ""
        return before + character + (self.suffix if kind & _LAST else "")


@dataclass(frozen=True)
class SeenSymbols:
    """Which symbols the words have.

    Attributes:
        spelling: How words are written.
        seen: bool[4, codes]: by kind of decoration and code, up to the greatest there is.
        counts: How often each code occurs, words weighted by their counts; None: not asked for.
        total: Symbols of all unique words.
    """

    spelling: Spelling
    seen: npt.NDArray[np.bool_]
    counts: Mapping[int, int] | None
    total: int

    def characters(self) -> set[str]:
        """All characters, undecorated."""
        codes: list[int] = np.flatnonzero(self.seen.any(axis=0)).tolist()
        return set(map(self.spelling.character, codes))

    def symbols(self, kinds: Iterable[int], kept: Iterable[str]) -> set[str]:
        """The symbols of these kinds whose characters are kept."""
        found = set()
        for character in kept:
            if len(character) != 1 or (self.spelling.in_bytes and not _is_byte(character)):
                continue
            code = self.spelling.code(character)
            if code < self.seen.shape[1]:
                found |= {self.spelling.symbol(character, k) for k in kinds if self.seen[k, code]}
        return found

    def alphabet(self, initial: Iterable[str], limit: int | None) -> list[str]:
        """The characters of the vocabulary by code point; see `reference.choose_alphabet`."""
        chosen = frozenset(initial)
        characters = self.characters() | chosen
        if limit is not None and limit < len(characters):
            assert self.counts is not None
            counts = {self.spelling.character(code): n for code, n in self.counts.items()}

            def rank(character: str) -> tuple[bool, int, str]:
                if character in chosen:
                    return (False, 0, character)
                return (True, -counts[character], character)

            characters = set(sorted(characters, key=rank)[:limit])
        return sorted(characters)


def see(words: Words, spelling: Spelling, with_counts: bool) -> SeenSymbols:
    """Reads all words once.

    Raises:
        UsageError: A word holds the end-of-word symbol.
    """
    seen = np.zeros((4, spelling.codes), np.bool_)
    sums = np.zeros((3, spelling.codes), np.int64)
    total = 0
    for piece in _pieces(words, spelling):
        total += len(piece.codes)
        _refuse_end_symbol(piece, spelling)
        kinds = piece.kinds(spelling)
        for kind in spelling.kinds:
            seen[kind, piece.codes if kinds is None else piece.codes[kinds == kind]] = True
        if with_counts:
            weights = np.repeat(piece.counts, np.diff(piece.offsets))
            for part in range(3):
                # 21 bits at once: sums of doubles stay exact.
                bits = ((weights >> (21 * part)) & _LOW_BITS).astype(np.float64)
                counted = np.bincount(piece.codes, bits)
                sums[part, : len(counted)] += counted.astype(np.int64)
    codes = int(np.flatnonzero(seen.any(axis=0)).max(initial=-1)) + 1
    seen, sums = seen[:, :codes], sums[:, :codes]
    counts = None
    if with_counts:
        low, middle, high = sums.tolist()
        found = np.flatnonzero(seen.any(axis=0)).tolist()
        counts = {c: low[c] + (middle[c] << 21) + (high[c] << 42) for c in found}
    return SeenSymbols(spelling, seen, counts, total)


def spell(
    words: Words, found: SeenSymbols, ids: Mapping[str, int], kept: Iterable[str]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """The words' symbols by id, one after another, and where each word begins and the last ends.

    Characters that are not among `kept` are left out. Which character is a word's first and which
    its last is decided before.
    """
    spelling = found.spelling
    table = _id_table(found, ids, kept)
    if spelling.in_bytes and not (table[_PLAIN, found.seen[_PLAIN]] == NO_ID).any():
        return table[_PLAIN][words.data], words.offsets
    symbols = np.empty(found.total, np.uint32)
    offsets = np.zeros(len(words.counts) + 1, np.int64)
    end = word = 0
    for piece in _pieces(words, spelling):
        kinds = piece.kinds(spelling)
        those = table[_PLAIN][piece.codes] if kinds is None else table[kinds, piece.codes]
        known = those != NO_ID
        ends = np.concatenate([[0], np.cumsum(known)])[piece.offsets]
        those = those[known]
        symbols[end : end + len(those)] = those
        offsets[word : word + len(ends)] = ends + end
        end += len(those)
        word += len(ends) - 1
    return symbols[:end], offsets


def _id_table(
    found: SeenSymbols, ids: Mapping[str, int], kept: Iterable[str]
) -> npt.NDArray[np.uint32]:
    spelling = found.spelling
    codes = found.seen.shape[1]
    table = np.full((4, codes), NO_ID, np.uint32)
    for character in kept:
        if len(character) != 1 or (spelling.in_bytes and not _is_byte(character)):
            continue
        code = spelling.code(character)
        for kind in spelling.kinds:
            if code < codes and found.seen[kind, code]:
                table[kind, code] = ids[spelling.symbol(character, kind)]
    return table


def _is_byte(character: str) -> bool:
    return byte_level.is_byte_level(character)


@dataclass(frozen=True)
class _Piece:
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
            kinds |= _CONTINUING
            kinds[starts[full]] &= 0xFF - _CONTINUING
        if spelling.suffix:
            kinds[ends[full] - 1] |= _LAST
        return kinds


def _pieces(words: Words, spelling: Spelling) -> Iterator[_Piece]:
    begin = 0
    while begin < len(words.counts):
        room = words.offsets[begin] + PIECE_BYTES
        end = int(np.searchsorted(words.offsets, room, side="right")) - 1
        end = min(max(end, begin + 1), len(words.counts))
        yield _piece(words, begin, end, spelling)
        begin = end


def _piece(words: Words, begin: int, end: int, spelling: Spelling) -> _Piece:
    offsets = words.offsets[begin : end + 1] - words.offsets[begin]
    data = words.data[words.offsets[begin] : words.offsets[end]]
    counts = words.counts[begin:end]
    if spelling.in_bytes:
        return _Piece(data, offsets, counts)
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
    return _Piece(codes, offsets, counts)


def _refuse_end_symbol(piece: _Piece, spelling: Spelling) -> None:
    if not spelling.end_symbol:
        return
    places = np.flatnonzero(piece.codes == ord(spelling.end_symbol))
    if len(places) > len(piece.counts):
        within = np.setdiff1d(places, piece.offsets[1:] - 1)[0]
        word = int(np.searchsorted(piece.offsets, within, side="right")) - 1
        codes = piece.codes[piece.offsets[word] : piece.offsets[word + 1] - 1]
        text = "".join(map(chr, codes[:100].tolist()))
        raise UsageError(
            f"end_of_word_symbol is {spelling.end_symbol!r}, which stands in the word {text!r}: "
            "give a character that the text does not have"
        )

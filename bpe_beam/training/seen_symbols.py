"""The symbols that words have: found in any part of the words, and merged over all parts.

Finding them takes the memory of reading words in chunks (symbols.py), and 25 MB of tables for
characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from bpe_beam.errors import DataError, UsageError
from bpe_beam.training.symbols import Spelling, chunks
from bpe_beam.training.words import Words, first_word_with

_KINDS = 4
_LOW_BITS = 0xFFFFFFFF
_SURROGATES = slice(0xD800, 0xE000)

_Count = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True)
class SeenSymbols:
    """The symbols that words have.

    Attributes:
        spelling: How words are written.
        seen: bool[4, codes]: whether a symbol occurs, by kind and code, up to the greatest code.
        counts: How often each code occurs, words weighted by their counts; None: not counted.
    """

    spelling: Spelling
    seen: npt.NDArray[np.bool_]
    counts: Mapping[int, int] | None

    def symbols(self, kinds: Iterable[int], kept: Iterable[str]) -> set[str]:
        """Return the symbols of some kinds whose characters are kept.

        Args:
            kinds: The kinds.
            kept: The characters that are kept.
        """
        codes = {character: self.spelling.code(character) for character in kept}
        return {
            self.spelling.symbol(character, kind)
            for character, code in codes.items()
            for kind in kinds
            if code < self.seen.shape[1] and self.seen[kind, code]
        }

    def alphabet(self, initial: Iterable[str], limit: int | None) -> list[str]:
        """Return the characters of the vocabulary by code point.

        Args:
            initial: Characters that come first if there are too many.
            limit: The most characters, at least 0: after the initial ones the most frequent are
                chosen, ties by code point. None: no limit.
        """
        chosen = frozenset(initial)
        counts = self.counts or {}
        codes = {self.spelling.character(code): code for code in self._codes()}

        def rank(character: str) -> tuple[bool, int, str]:
            is_seen = character not in chosen
            return is_seen, -counts[codes[character]] if is_seen else 0, character

        characters = codes.keys() | chosen
        if limit is None or limit >= len(characters):
            return sorted(characters)
        return sorted(sorted(characters, key=rank)[:limit])

    def merged(self, other: SeenSymbols) -> SeenSymbols:
        """Return the symbols of the words of both.

        Raises:
            ValueError: Their spellings differ, or only one of them has counts.
        """
        if self.spelling != other.spelling or (self.counts is None) != (other.counts is None):
            raise ValueError("symbols that were not found in the same way")
        seen = np.zeros((_KINDS, max(self.seen.shape[1], other.seen.shape[1])), np.bool_)
        for one in (self, other):
            seen[:, : one.seen.shape[1]] |= one.seen
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = dict(self.counts)
            for code, count in other.counts.items():
                counts[code] = counts.get(code, 0) + count
        return SeenSymbols(self.spelling, seen, counts)

    def to_bytes(self) -> bytes:
        """Return the symbols as JSON; equal symbols give equal bytes."""
        counts = None if self.counts is None else [self.counts[code] for code in self._codes()]
        runs = [_runs(row) for row in self.seen]
        spelling = msgspec.structs.astuple(self.spelling)
        return msgspec.json.encode(_Stored(*spelling, seen=runs, counts=counts))

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "seen symbols") -> SeenSymbols:
        """Return the symbols that `to_bytes` wrote.

        Args:
            data: Possibly hostile bytes.
            source: The name of their file in messages.

        Raises:
            DataError: The bytes are something else; the message has the position.
        """
        try:
            stored = msgspec.json.decode(data, type=_Stored)
            return stored.read()
        except ValueError as error:
            raise DataError(f"{source}: {error}") from None

    def _codes(self) -> list[int]:
        codes: list[int] = np.flatnonzero(self.seen.any(axis=0)).tolist()
        return codes


class _Stored(Spelling, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The JSON of `SeenSymbols`.

    Attributes:
        seen: By kind, the codes where runs of seen symbols begin and end, in turn.
        counts: The counts of all codes, ascending.
    """

    seen: Annotated[list[list[_Count]], msgspec.Meta(min_length=_KINDS, max_length=_KINDS)]
    counts: list[_Count] | None

    def read(self) -> SeenSymbols:
        """Return the symbols.

        Raises:
            ValueError: The values contradict each other.
        """
        if len(self.end_symbol) > 1:
            raise ValueError("more than one character - at `$.end_symbol`")
        spelling = Spelling(self.in_bytes, self.prefix, self.suffix, self.end_symbol)
        seen = np.zeros((_KINDS, spelling.codes), np.bool_)
        for kind, bounds in enumerate(self.seen):
            most = spelling.codes if kind in spelling.kinds else 0
            ascending = bounds == sorted(set(bounds)) and len(bounds) % 2 == 0
            if not ascending or max(bounds, default=0) > most:
                raise ValueError(f"no runs of codes that such symbols have - at `$.seen[{kind}]`")
            for begin, end in zip(bounds[::2], bounds[1::2], strict=True):
                seen[kind, begin:end] = True
        if not spelling.in_bytes and seen[:, _SURROGATES].any():
            raise ValueError("surrogates are not characters - at `$.seen`")
        seen = _trimmed(seen)
        if self.counts is None:
            return SeenSymbols(spelling, seen, None)
        codes = np.flatnonzero(seen.any(axis=0)).tolist()
        if len(self.counts) != len(codes):
            raise ValueError(
                f"{len(self.counts)} counts of {len(codes)} characters - at `$.counts`"
            )
        return SeenSymbols(spelling, seen, dict(zip(codes, self.counts, strict=True)))


def find_symbols(words: Words, spelling: Spelling, *, with_counts: bool) -> SeenSymbols:
    """Return the symbols of words.

    Args:
        words: Unique words; all, or a part.
        spelling: How they are written.
        with_counts: Whether to count how often each character occurs.

    Raises:
        UsageError: A word contains the end-of-word symbol.
    """
    if spelling.end_symbol:
        _refuse_end_symbol(words, spelling.end_symbol)
    seen = np.zeros((_KINDS, spelling.codes), np.bool_)
    low, high = np.zeros((2, spelling.codes), np.int64)
    for chunk in chunks(words, spelling):
        seen[chunk.kinds(spelling), chunk.codes] = True
        if with_counts:
            weights = np.repeat(chunk.counts, np.diff(chunk.offsets))
            # In halves, whose sums stay within 64 bits.
            np.add.at(low, chunk.codes, weights & _LOW_BITS)
            np.add.at(high, chunk.codes, weights >> 32)
    seen = _trimmed(seen)
    if not with_counts:
        return SeenSymbols(spelling, seen, None)
    codes = np.flatnonzero(seen.any(axis=0)).tolist()
    return SeenSymbols(spelling, seen, {c: int(low[c]) + (int(high[c]) << 32) for c in codes})


def _runs(row: npt.NDArray[np.bool_]) -> list[int]:
    """Return the codes where runs of true values begin and end, in turn."""
    bounds: list[int] = np.flatnonzero(np.diff(row, prepend=False, append=False)).tolist()
    return bounds


def _trimmed(seen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the columns up to the last with a true value."""
    columns = np.flatnonzero(seen.any(axis=0))
    return seen[:, : int(columns.max(initial=-1)) + 1]


def _refuse_end_symbol(words: Words, symbol: str) -> None:
    word = first_word_with(words, symbol.encode())
    if word is not None:
        raise UsageError(
            f"must be a character that the text does not have, got {symbol!r}, which the word "
            f"{word.decode()[:100]!r} has",
            ("end_of_word_symbol",),
        )

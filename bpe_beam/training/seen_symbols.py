"""Which symbols the words have: seen part by part, wherever the parts stand, and added up.

Reading takes what reading in pieces takes (symbols.py), and 70 MB of tables for characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.json_node import Node, parse
from bpe_beam.training.symbols import Piece, Spelling, pieces
from bpe_beam.training.words import Words

_LOW_BITS = (1 << 21) - 1
_SURROGATES = (0xD800, 0xE000)


@dataclass(frozen=True)
class SeenSymbols:
    """Which symbols the words have.

    Attributes:
        spelling: How words are written.
        seen: bool[4, codes]: by kind of decoration and code, up to the greatest there is.
        counts: How often each code occurs, words weighted by their counts; None: not asked for.
    """

    spelling: Spelling
    seen: npt.NDArray[np.bool_]
    counts: Mapping[int, int] | None

    def characters(self) -> set[str]:
        """All characters, undecorated."""
        return set(map(self.spelling.character, self._codes()))

    def symbols(self, kinds: Iterable[int], kept: Iterable[str]) -> set[str]:
        """The symbols of these kinds whose characters are kept."""
        found = set()
        for character in kept:
            if not self.spelling.has_code(character):
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

    def merged(self, other: SeenSymbols) -> SeenSymbols:
        """What words have of which some were seen here and the others there.

        Raises:
            ValueError: The two were written otherwise, or only one of them counted.
        """
        if self.spelling != other.spelling or (self.counts is None) != (other.counts is None):
            raise ValueError("symbols that were not seen in the same way")
        codes = max(self.seen.shape[1], other.seen.shape[1])
        seen = np.zeros((4, codes), np.bool_)
        for one in (self, other):
            seen[:, : one.seen.shape[1]] |= one.seen
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = dict(self.counts)
            for code, count in other.counts.items():
                counts[code] = counts.get(code, 0) + count
        return SeenSymbols(self.spelling, seen, counts)

    def to_bytes(self) -> bytes:
        """As JSON; equal symbols give equal bytes."""
        counts = self.counts
        value = {
            "in_bytes": self.spelling.in_bytes,
            "prefix": self.spelling.prefix,
            "suffix": self.spelling.suffix,
            "end_symbol": self.spelling.end_symbol,
            # Where runs of codes that occur begin and end, in turn.
            "seen": [_bounds(row) for row in self.seen],
            "counts": None if counts is None else [counts[code] for code in self._codes()],
        }
        return json.dumps(value, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "seen symbols") -> SeenSymbols:
        """Reads what `to_bytes` wrote.

        Args:
            data: Possibly hostile bytes.
            source: How messages name them.

        Raises:
            DataError: They are something else; names the place.
        """
        try:
            fields = Node(source, "", parse(data, source)).fields(
                "in_bytes", "prefix", "suffix", "end_symbol", "seen", "counts"
            )
            spelling = read_spelling(fields)
            seen = _read_seen(fields["seen"], spelling)
            counts = None
            if fields["counts"].value is not None:
                codes = np.flatnonzero(seen.any(axis=0)).tolist()
                items = [*fields["counts"].items()]
                if len(items) != len(codes):
                    fields["counts"].refuse(f"{len(items)} counts of {len(codes)} characters")
                for item in items:
                    item.count()
                counts = {code: item.value for code, item in zip(codes, items, strict=True)}
        except UsageError as error:
            raise DataError(str(error)) from None
        return cls(spelling, seen, counts)

    def _codes(self) -> list[int]:
        codes: list[int] = np.flatnonzero(self.seen.any(axis=0)).tolist()
        return codes


def see(words: Words, spelling: Spelling, with_counts: bool) -> SeenSymbols:
    """Reads all words once.

    Raises:
        UsageError: A word holds the end-of-word symbol.
    """
    seen = np.zeros((4, spelling.codes), np.bool_)
    sums = np.zeros((3, spelling.codes), np.int64)
    for piece in pieces(words, spelling):
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
    return SeenSymbols(spelling, seen, counts)


def read_spelling(fields: Mapping[str, Node]) -> Spelling:
    """A spelling from fields of its own names; raises UsageError."""
    spelling = Spelling(
        fields["in_bytes"].boolean(),
        fields["prefix"].string(),
        fields["suffix"].string(),
        fields["end_symbol"].string(),
    )
    if len(spelling.end_symbol) > 1:
        fields["end_symbol"].refuse(f"{spelling.end_symbol!r} is more than one character")
    return spelling


def _bounds(row: npt.NDArray[np.bool_]) -> list[int]:
    edges: list[int] = np.flatnonzero(np.diff(row, prepend=False, append=False)).tolist()
    return edges


def _read_seen(node: Node, spelling: Spelling) -> npt.NDArray[np.bool_]:
    rows = [*node.items()]
    if len(rows) != 4:
        node.refuse(f"{len(rows)} rows; there are 4 kinds of symbols")
    seen = np.zeros((4, spelling.codes), np.bool_)
    for kind, row in enumerate(rows):
        bounds = [item.count() for item in row.items()]
        if (
            len(bounds) % 2
            or bounds != sorted(set(bounds))
            or max(bounds, default=0) > (spelling.codes if kind in spelling.kinds else 0)
        ):
            row.refuse("these are not runs of codes that such symbols can have")
        for begin, end in zip(bounds[::2], bounds[1::2], strict=True):
            seen[kind, begin:end] = True
    if not spelling.in_bytes and seen[:, slice(*_SURROGATES)].any():
        node.refuse("surrogates are no characters")
    codes = int(np.flatnonzero(seen.any(axis=0)).max(initial=-1)) + 1
    return seen[:, :codes]


def _refuse_end_symbol(piece: Piece, spelling: Spelling) -> None:
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

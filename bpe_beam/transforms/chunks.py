"""Bytes of any length through a shuffle: in pieces, since no element there has over a megabyte."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from bpe_beam.errors import DataError

PIECE_BYTES = 999_900
"""What a piece holds at most; with its key and its numbers an element stays under 1 MB."""

Piece = tuple[bytes, int, int, bytes]
"""A hash of the whole, so that equal wholes have equal ones (none of what is one piece); the
piece's number; how many there are; its bytes."""


def to_pieces(data: bytes) -> Iterator[Piece]:
    """Cuts what is too long; all else is one piece."""
    if len(data) <= PIECE_BYTES:
        yield b"", 0, 1, data
        return
    name = hashlib.blake2b(data, digest_size=16).digest()
    of = -(-len(data) // PIECE_BYTES)
    for number in range(of):
        start = number * PIECE_BYTES
        yield name, number, of, data[start : start + PIECE_BYTES]


def from_pieces(pieces: Iterable[Piece]) -> Iterator[bytes]:
    """What was cut, made whole; pieces come in any order, and those of equal wholes mixed.

    Holds those pieces whose others have not come yet.

    Raises:
        DataError: Some never came: a trigger fired between them, or the runner lost them.
    """
    waiting: dict[bytes, list[list[bytes]]] = {}
    for name, number, of, data in pieces:
        if of == 1:
            yield data
            continue
        found = waiting.setdefault(name, [[] for _ in range(of)])
        found[number].append(data)
        if all(found):
            yield b"".join(each.pop() for each in found)
    if any(each for found in waiting.values() for each in found):
        raise DataError(
            "words of over a megabyte came apart: a trigger fired between their pieces (leave out "
            "what is no text), or the runner lost some"
        )

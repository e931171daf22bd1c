"""Bytes of any length through a shuffle: in chunks, since each element there is at most 1 MB."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from bpe_beam.counts.word_table import BLOCK_BYTES
from bpe_beam.errors import DataError

CHUNK_BYTES = BLOCK_BYTES - 100
"""Maximum bytes of a chunk; its key and its numbers need less than the other 100."""

Chunk = tuple[bytes, int, int, bytes]
"""A hash of the whole value (empty for a value of one chunk), the number of the chunk, the number
of all chunks of the value, and the bytes of the chunk."""


def to_chunks(data: bytes) -> Iterator[Chunk]:
    """Yield the chunks of a value; one for a value of at most `CHUNK_BYTES`."""
    if len(data) <= CHUNK_BYTES:
        yield b"", 0, 1, data
        return
    name = hashlib.blake2b(data, digest_size=16).digest()
    total = -(-len(data) // CHUNK_BYTES)
    for number in range(total):
        start = number * CHUNK_BYTES
        yield name, number, total, data[start : start + CHUNK_BYTES]


def from_chunks(chunks: Iterable[Chunk], what: str) -> Iterator[bytes]:
    """Yield the values of chunks, which may come in any order and mixed.

    Keeps the chunks of incomplete values in memory.
    """
    incomplete: dict[bytes, list[list[bytes]]] = {}
    for name, number, total, data in chunks:
        if total == 1:
            yield data
            continue
        by_number = incomplete.setdefault(name, [[] for _ in range(total)])
        by_number[number].append(data)
        if all(by_number):
            yield b"".join(copies.pop() for copies in by_number)
    if any(copies for by_number in incomplete.values() for copies in by_number):
        raise DataError(
            f"a {what} of over a megabyte was split: a trigger fired between its chunks, or the "
            "runner lost one; if a trigger did, filter out documents that are not text"
        )

"""The first bytes of a file's content, decompressed from as few stored bytes as show some."""

from __future__ import annotations

import io

from bpe_beam.corpus.streams import decompress
from bpe_beam.corpus.streams.decompressed import BrokenStream
from bpe_beam.corpus.streams.stored import Stored, ignore


class _Head(Stored):
    """The first bytes of a file, as if they were all of it."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self.position = 0
        self.closed = False
        self._url = ""
        self._on_read = ignore
        self._failure = None
        self._file = io.BytesIO(data)


def first_decompressed(head: bytes, compression: str, count: int) -> bytes:
    """Return the first bytes of a compressed file's content, as far as its head shows them."""
    source = decompress(_Head(head), compression, len(head))
    content = bytearray()
    buffer = memoryview(bytearray(count))
    try:
        while source and len(content) < count:
            size = source.readinto(buffer[: count - len(content)])
            if not size:
                break
            content += buffer[:size]
    except BrokenStream:
        pass  # the head ends within the stream, or the reader of the file will report the damage
    return bytes(content)

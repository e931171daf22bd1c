"""A file that is hashed while it is written."""

from __future__ import annotations

import hashlib
import io
from typing import Any, BinaryIO


class HashingFile(io.RawIOBase):
    """Hands on what is written, and keeps its size and SHA-256.

    Args:
        file: Open for writing; whoever opened it closes it.

    Attributes:
        bytes: How many so far.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._hash = hashlib.sha256()
        self.bytes = 0

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any, /) -> int:
        """Appends bytes."""
        size = memoryview(data).nbytes
        self._file.write(data)
        self._hash.update(data)
        self.bytes += size
        return size

    @property
    def sha256(self) -> str:
        """Of what was written so far, in hex."""
        return self._hash.hexdigest()

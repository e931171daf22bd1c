"""A file that is hashed while it is written."""

from __future__ import annotations

import hashlib
import io
from typing import Any, BinaryIO


class HashingFile(io.RawIOBase):
    """Writes to a file, and computes the size and the SHA-256 of the bytes.

    Args:
        file: A file that is open for writing; the caller closes it.

    Attributes:
        bytes: The number of bytes written so far.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._hash = hashlib.sha256()
        self.bytes = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any, /) -> int:
        """Append bytes."""
        size = memoryview(data).nbytes
        self._file.write(data)
        self._hash.update(data)
        self.bytes += size
        return size

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes written so far, in hex."""
        return self._hash.hexdigest()

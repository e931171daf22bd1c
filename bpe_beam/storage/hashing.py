"""Files that are hashed while they are written, and compared with their hashes when read."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Any, BinaryIO

from bpe_beam.errors import DataError
from bpe_beam.storage.names import redact

if TYPE_CHECKING:
    from bpe_beam.storage import Storage


class HashingFile(io.RawIOBase):
    """Writes to an open file, or reads it in order, and hashes the bytes; the caller closes it."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._hash = hashlib.sha256()
        self.bytes = 0

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data

    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        self._file.write(data)
        self._hash.update(data)
        self.bytes += size
        return size

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes written so far, in hex."""
        return self._hash.hexdigest()


def read_hashed(storage: Storage, url: str, sha256: str) -> bytes:
    """Return the content of a file that has this SHA-256."""
    data = storage.read_bytes(url)
    require_sha256(hashlib.sha256(data).hexdigest(), sha256, url)
    return data


def require_sha256(actual: str, expected: str, url: str) -> None:
    """Refuse a file with another SHA-256 than it was written with."""
    if actual != expected:
        remedy = "remove it, and run the command that wrote it again"
        raise DataError(
            f"{redact(url)} is not the file that was written: its SHA-256 differs", remedy=remedy
        )

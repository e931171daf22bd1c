"""A file of a folder, as receipts and manifests describe it."""

from __future__ import annotations

import builtins
import hashlib

from msgspec import Struct

from bpe_beam.storage.hashing import HashingFile
from bpe_beam.storage.json_file import Count, Sha256


class FileInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """One file as it was written.

    Attributes:
        name: The name relative to the folder, with `/` between its parts.
        bytes: Its size.
        sha256: The SHA-256 of its bytes.
    """

    name: str
    bytes: Count
    sha256: Sha256

    @staticmethod
    def of(name: str, data: builtins.bytes) -> FileInfo:
        """Return the description of a file."""
        return FileInfo(name, len(data), hashlib.sha256(data).hexdigest())

    @staticmethod
    def written(name: str, file: HashingFile) -> FileInfo:
        """Return the description of a file from the bytes written to it so far."""
        return FileInfo(name, file.bytes, file.sha256)

"""A file of a folder, as receipts and manifests describe it."""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FileInfo:
    """One file as it was written.

    Attributes:
        name: The name relative to the folder, with `/` between its parts.
        bytes: Its size.
        sha256: The SHA-256 of its bytes, 64 lower-case hex digits.
    """

    name: str
    bytes: int
    sha256: str

    @staticmethod
    def of(name: str, data: builtins.bytes) -> FileInfo:
        """Return the description of a file with this name and this content."""
        return FileInfo(name, len(data), hashlib.sha256(data).hexdigest())

    def to_json(self) -> dict[str, object]:
        """Return the file as JSON values."""
        return {"name": self.name, "bytes": self.bytes, "sha256": self.sha256}

    @staticmethod
    def from_json(value: Mapping[str, object]) -> FileInfo:
        """Read what `to_json` returned; other keys are ignored.

        Raises:
            KeyError: A key is missing.
            TypeError: A value has another type.
        """
        name, size, sha256 = value["name"], value["bytes"], value["sha256"]
        if not (isinstance(name, str) and type(size) is int and isinstance(sha256, str)):
            raise TypeError("a file must have a name, a size in bytes and a SHA-256")
        return FileInfo(name, size, sha256)

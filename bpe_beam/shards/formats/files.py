"""The two kinds of file that formats work with: hashed while written, checked while read."""

from __future__ import annotations

from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.hashing import HashingFile


class ShardFile(HashingFile):
    """A file of a shard while it is written."""

    def info(self, name: str) -> FileInfo:
        """Return the description of the bytes written so far, as a file of this name."""
        return FileInfo(name, self.bytes, self.sha256)


class RangeFile:
    """A file read by ranges; whatever goes wrong is a DataError that names file and byte.

    Attributes:
        url: its path or URL, without what may be secret.
        size: its size in bytes, as the storage tells it.
    """

    def __init__(self, storage: Storage, url: str) -> None:
        """Opens a file.

        Raises:
            DataError: if it is missing or cannot be opened.
        """
        self.url = redact(url)
        self.size = storage.size(url)
        self._file = storage.open(url)

    def close(self) -> None:
        """Closes it."""
        self._file.close()

    def read(self, start: int, count: int) -> bytes:
        """Reads exactly `count` bytes from byte `start` on; in order, without seeking.

        Raises:
            DataError: if the file ends before, or reading fails.
        """
        parts = []
        missing = count
        try:
            # Asked, not remembered: some stores give one file to all who open it.
            if self._file.tell() != start:
                self._file.seek(start)
            while missing and (part := self._file.read(missing)):
                parts.append(part)
                missing -= len(part)
        except Exception as error:  # the clouds' libraries raise types of their own
            raise DataError(
                f"{self.url}: cannot be read at byte {start}: {type(error).__name__}: {error}"
            ) from error
        if missing:
            raise DataError(
                f"{self.url}: ends at byte {start + count - missing}; bytes up to "
                f"{start + count} were expected"
            )
        return b"".join(parts)

"""A file as it is stored, checked against its plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage, named_errors, redact


def ignore_progress(count: int) -> None:
    """Ignore the number of bytes that were read."""


class ChangedFileError(DataError):
    """A file is not the one that was planned.

    Args:
        url: The file.
        size: Its planned size in bytes.
        change: What has changed, as the end of a sentence.
    """

    def __init__(self, url: str, size: int, change: str) -> None:
        super().__init__(
            f"{redact(url)} had {size} bytes when the job was planned, and {change}; start the job "
            "again on files that stay as they are"
        )


class Stored:
    """The stored bytes of a file from some position on.

    A part of a changed file must not pass for the whole: another size or tag than planned is an
    error. The bytes that are read after opening are of one version, where the store can promise
    that; where it cannot, another length is noticed at the file's end.

    Args:
        storage: The storage client.
        url: The file.
        size: Its planned size in bytes.
        start: The byte to begin at.
        tag: Its planned tag, or "".
        on_read: Called after each read with the number of its bytes.

    Attributes:
        size: The planned size in bytes.
        position: The byte that is read next.
        first: See `Source`.
        boundary: See `Source`: None, as a plain file has no units.
        boundary_unit: See `Source`.

    Raises:
        DataError: The file cannot be opened, or has another size or tag than planned. Reading
            raises it if storage fails, or the file is shorter or longer than planned.
    """

    def __init__(
        self,
        storage: Storage,
        url: str,
        size: int,
        start: int = 0,
        tag: str = "",
        on_read: Callable[[int], None] = ignore_progress,
    ) -> None:
        self.size = size
        self.position = start
        self.first = start
        self.boundary: int | None = None
        self.boundary_unit = 0
        self._url = url
        self._on_read = on_read
        with named_errors("read", url):
            found, self._file = storage.open_with_stat(url)
        if found.size != size or (tag and found.tag not in ("", tag)):
            self.close()
            same_size = "its content has changed since"
            raise self._changed(same_size if found.size == size else f"has {found.size} now")
        self.seek(start)

    def readinto(self, view: memoryview) -> int:
        """Fill a view from its start; return how many bytes, 0 at the file's end."""
        view = view[: self.size - self.position]
        with named_errors("read", self._url):
            file: Any = self._file
            count: int = file.readinto(view) if view else len(file.read(1))
        self._advance(count, len(view))
        return count

    def read(self, count: int) -> bytes:
        """Return the next bytes: at most `count`, none at the file's end."""
        count = min(count, self.size - self.position)
        with named_errors("read", self._url):
            data = self._file.read(count or 1)
        self._advance(len(data), count)
        return data

    def read_exactly(self, count: int) -> bytes:
        """Return the next `count` bytes, at most those that are left."""
        parts = []
        while count:
            parts.append(self.read(count))
            count -= len(parts[-1])
        return b"".join(parts)

    def seek(self, position: int) -> None:
        """Continue at another position."""
        with named_errors("read", self._url):
            self._file.seek(position)
        self.position = position

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _advance(self, count: int, wanted: int) -> None:
        if count and not wanted:
            raise self._changed("it is longer now")
        if wanted and not count:
            raise self._changed(f"reading ended at byte {self.position}")
        self.position += count
        if count:
            self._on_read(count)

    def _changed(self, change: str) -> ChangedFileError:
        return ChangedFileError(self._url, self.size, change)

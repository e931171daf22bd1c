"""A file as it is stored, checked against its plan."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from bpe_beam.errors import DataError, lacks_memory
from bpe_beam.storage import Storage, named_errors, redact


def ignore(_reported: object) -> None:
    """Ignore a report: the bytes that were read, or the boundaries of a slice."""


class ChangedFileError(DataError):
    """A file is not the one that was planned."""


class Stored:
    """The stored bytes of a file from some position on; also the file object that pyarrow reads.

    A changed file is not read: another size or tag than planned raises DataError. The bytes that
    are read after opening are of one version, where the store can promise that; elsewhere another
    length is noticed at the file's end.
    """

    def __init__(
        self,
        storage: Storage,
        url: str,
        size: int,
        start: int = 0,
        tag: str = "",
        on_read: Callable[[int], None] = ignore,
    ) -> None:
        self.size = size
        self.position = start
        self.closed = False
        self._url = url
        self._on_read = on_read
        self._failure: DataError | None = None
        with named_errors("read", url):
            opened, self._file = storage.open_with_stat(url)
        if opened.size != size or (tag and opened.tag not in ("", tag)):
            self.close()
            same_size = "its content has changed since"
            raise self._changed(same_size if opened.size == size else f"has {opened.size} now")
        self.seek(start)

    def readinto(self, view: memoryview) -> int:
        """Fill a view from its start; return how many bytes, 0 at the file's end."""
        view = view[: self.size - self.position]
        with named_errors("read", self._url):
            file: Any = self._file
            count: int = file.readinto(view) if view else len(file.read(1))
        self._advance(count, len(view))
        return count

    def read(self, count: int = -1) -> bytes:
        """Return the next `count` bytes, or all to the file's end; fewer only at the end."""
        rest = max(0, self.size - self.position)
        count = rest if count < 0 else min(count, rest)
        if rest and not count:
            return b""
        try:
            with named_errors("read", self._url):
                data = self._file.read(count or 1)
            self._advance(len(data), count)
        except DataError as error:
            self._failure = error
            raise
        return data if len(data) == count else data + self.read(count - len(data))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> None:
        position = offset + (0, self.position, self.size)[whence]
        with named_errors("read", self._url):
            self._file.seek(position)
        self.position = position

    def tell(self) -> int:
        return self.position

    def close(self) -> None:
        self.closed = True
        self._file.close()

    def check(self, error: Exception) -> None:
        """Raise the error of storage that reading raised before, or one of too little memory.

        pyarrow raises the same types of errors for a file that is broken and for one that cannot be
        read. The first is a reject, the others end the job.
        """
        if self._failure is not None:
            raise self._failure
        if lacks_memory(error):
            raise error

    def _advance(self, count: int, wanted: int) -> None:
        if count and not wanted:
            raise self._changed("it is longer now")
        if wanted and not count:
            raise self._changed(f"reading ended at byte {self.position}")
        self.position += count
        if count:
            self._on_read(count)

    def _changed(self, change: str) -> ChangedFileError:
        return ChangedFileError(
            f"{redact(self._url)} had {self.size} bytes when the job was planned, and {change}; "
            "start the job again on files that stay as they are"
        )

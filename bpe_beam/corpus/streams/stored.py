"""A file as it is stored, held to what was planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage, named_errors, redact


def unmetered(count: int) -> None:
    """Stand where nobody wants to know how much was read."""


class Stored:
    """The stored bytes of a file from some place on.

    A part of a file that was changed meanwhile must not pass for the whole: another size or tag
    than planned is an error. What storage reads from then on is of one version, where the store
    can promise that; where it cannot, another length is seen at the file's end.

    Args:
        storage: The storage client.
        url: The file.
        size: Its planned size in bytes.
        start: The byte to begin at.
        tag: Its planned tag, or "".
        on_read: Called after each read with the number of stored bytes that it gave.

    Attributes:
        size: The planned size in bytes.
        position: The byte that is read next.
        first, boundary, boundary_unit: As a `Source` has them; a plain file has no units.
    """

    def __init__(
        self,
        storage: Storage,
        url: str,
        size: int,
        start: int = 0,
        tag: str = "",
        on_read: Callable[[int], None] = unmetered,
    ) -> None:
        self.size = size
        self.position = start
        self.first = start
        self.boundary: int | None = None
        self.boundary_unit = 0
        self._url = url
        self._on_read = on_read
        self._file = open_planned(storage, url, size, tag)
        self.seek(start)

    def readinto(self, view: memoryview) -> int:
        """Fills the view from its start; returns how many bytes, 0 at the end.

        Raises:
            DataError: Storage fails, or the file is shorter or longer than planned.
        """
        view = view[: self.size - self.position]
        with named_errors("read", self._url):
            if not view:
                if self._file.read(1):
                    raise changed(self._url, self.size, "it is longer now")
                return 0
            count = self._file.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise changed(self._url, self.size, f"reading ended at byte {self.position}")
        self.position += count
        self._on_read(count)
        return int(count)

    def read(self, count: int) -> bytes:
        """At most `count` bytes; none at the end."""
        buffer = bytearray(count)
        return bytes(memoryview(buffer)[: self.readinto(memoryview(buffer))])

    def seek(self, position: int) -> None:
        """Goes on from another place."""
        with named_errors("read", self._url):
            self._file.seek(position)
        self.position = position

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def open_planned(storage: Storage, url: str, size: int, tag: str = "") -> BinaryIO:
    """Opens a file for reading, if it is still the one that was planned.

    Args:
        storage: The storage client.
        url: The file.
        size: Its planned size in bytes.
        tag: Its planned tag; without one the size is not looked at either.

    Raises:
        DataError: It cannot be opened, or has another size or tag now.
    """
    with named_errors("read", url):
        found, file = storage.open_with_stat(url)
    if tag and (found.size != size or found.tag not in ("", tag)):
        file.close()
        how = "its content has changed since" if found.size == size else f"has {found.size} now"
        raise changed(url, size, how)
    return file


class ChangedFileError(DataError):
    """A file is not the one that was planned."""


def changed(url: str, size: int, how: str) -> ChangedFileError:
    """The error of a file that is not the one that was planned."""
    return ChangedFileError(
        f"{redact(url)} had {size} bytes when the job was planned, and {how}; start the job again "
        "on files that stay as they are"
    )

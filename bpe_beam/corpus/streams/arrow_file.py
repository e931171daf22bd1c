"""A stored file as pyarrow reads it."""

from __future__ import annotations

import os

from bpe_beam.corpus.streams.stored import Stored
from bpe_beam.errors import DataError


class ArrowFile:
    """The file object that `pyarrow.PythonFile` reads.

    pyarrow raises the same types of errors for a file that is broken and for one that cannot be
    read. The first is a reject, the second ends the job, so an error of storage is kept.

    Args:
        stored: The file.

    Attributes:
        size: Its size in bytes.
        closed: Whether it is closed.
    """

    def __init__(self, stored: Stored) -> None:
        self.size = stored.size
        self.closed = False
        self._stored = stored
        self._failure: DataError | None = None

    def read(self, count: int = -1) -> bytes:
        """Return the next `count` bytes, or all to the end; fewer only at the end."""
        left = max(0, self.size - self.tell())
        try:
            if not left:
                return self._stored.read(1)  # nothing, unless the file has grown: then an error
            return self._stored.read_exactly(left if count < 0 else min(count, left))
        except DataError as error:
            self._failure = error
            raise

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Return the new position, after a change.

        Args:
            offset: Bytes from the origin.
            whence: The origin: `os.SEEK_SET`, `os.SEEK_CUR` or `os.SEEK_END`.
        """
        self._stored.seek(offset + (0, self.tell(), self.size)[whence])
        return self.tell()

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._stored.position

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return False."""
        return False

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self._stored.close()

    def check(self) -> None:
        """Raise the error of storage, if there was one: the file is not to blame then."""
        if self._failure is not None:
            raise self._failure

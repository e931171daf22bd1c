"""A file that pyarrow reads: seekable, of its planned size, with failures of storage kept.

pyarrow raises OSError for a file that is broken as well as for one that cannot be read. The first
is a reject, the second ends the job; so what storage raised is kept here.
"""

from __future__ import annotations

import os

from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.corpus.streams.stored import changed, open_planned
from bpe_beam.errors import DataError
from bpe_beam.storage import named_errors


class PlannedFile:
    """An input file, opened; what `pyarrow.PythonFile` wants of one.

    Args:
        request: A slice of the file.

    Raises:
        DataError: It cannot be opened, or is not as long as it was planned.
    """

    def __init__(self, request: SliceRequest) -> None:
        self.size = request.file.size
        self.closed = False
        self._url = request.url
        self._failure: DataError | None = None
        self._on_read = request.on_read
        self._file = open_planned(request.storage, request.url, self.size, request.file.tag)
        with named_errors("read", request.url):
            found = self._file.seek(0, os.SEEK_END)
            self._file.seek(0)
        if found != self.size:
            self.close()
            raise changed(request.url, self.size, f"has {found} now")

    def read(self, count: int = -1) -> bytes:
        """So many bytes, or all to the end; fewer only at the end."""
        left = self.size - self.tell()
        count = max(0, left if count < 0 else min(count, left))
        parts, missing = [], count
        try:
            with named_errors("read", self._url):
                while missing:
                    part = self._file.read(missing)
                    if not part:
                        raise changed(
                            self._url, self.size, f"reading ended {missing} bytes too soon"
                        )
                    parts.append(part)
                    missing -= len(part)
        except DataError as error:
            self._failure = error
            raise
        self._on_read(count)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves; returns the place."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The place."""
        return self._file.tell()

    def readable(self) -> bool:
        """It is."""
        return True

    def writable(self) -> bool:
        """It is not."""
        return False

    def seekable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Closes the file."""
        self.closed = True
        self._file.close()

    def check(self) -> None:
        """Raises what storage raised, if it did: then the file is not to blame."""
        if self._failure is not None:
            raise self._failure

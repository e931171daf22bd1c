"""A file that is read by ranges, whose errors name the file and the byte."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bpe_beam.errors import HUGE_BYTES, DataError
from bpe_beam.shards.stored_shard import FileArray
from bpe_beam.storage import Storage, redact


class RangeFile:
    """A file that is read by ranges; a context manager.

    Every failure is a DataError that names file and byte.
    """

    def __init__(self, storage: Storage, url: str) -> None:
        self.url = redact(url)
        self.opened_again = partial(RangeFile, storage, url)
        self.size = storage.size(url)
        self._file = storage.open(url)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> RangeFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def array(self, dtype: np.dtype[Any], count: int, start: int = 0) -> FileArray:
        """Return an array in the file, which is read where it is sliced."""
        return FileArray(self, dtype, count, start)

    def read(self, start: int, count: int) -> bytes:
        """Return a range of bytes; ranges that are read in order need no seeking."""
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
            if isinstance(error, MemoryError) and count < HUGE_BYTES:
                raise
            raise DataError(
                f"{self.url}: cannot be read at byte {start}: {type(error).__name__}: {error}"
            ) from error
        if missing:
            raise DataError(
                f"{self.url}: ends at byte {start + count - missing}; bytes up to "
                f"{start + count} were expected"
            )
        return b"".join(parts)

"""Local temporary files of numbers that a shard needs before or after it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.stored_shard import MappedFile

if TYPE_CHECKING:
    from typing_extensions import Self

_IN_MEMORY = 4 << 20  # the bytes of a temporary file that are kept in memory, not on disk


@contextmanager
def spool_errors(content: str, size: str) -> Iterator[None]:
    """Make an OSError of the block a DataError that names a temporary file."""
    try:
        yield
    except OSError as error:
        import tempfile

        raise DataError(
            f"{tempfile.gettempdir()}: the temporary file with {content} failed: "
            f"{error.strerror or error}; it needs {size}, and the variable TMPDIR chooses another "
            "folder"
        ) from error


class Spool:
    """Bytes that are written one after the other, and then read; a context manager."""

    def __init__(self, content: str, size: str) -> None:
        self._content, self._size = content, size
        self._file: BinaryIO = BytesIO()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def write(self, data: Any) -> None:
        """Append bytes, or the bytes of an array."""
        with spool_errors(self._content, self._size):
            self._file.write(data)
            if isinstance(self._file, BytesIO) and self._file.tell() > _IN_MEMORY:
                import tempfile  # slow to import, and few shards need it

                in_memory = self._file
                self._file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
                self._file.write(in_memory.getbuffer())

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yield all bytes in blocks; the last may be smaller."""
        start = 0
        while block := self.read(start, size):
            yield block
            start += len(block)

    def read(self, start: int, count: int) -> bytes:
        """Return a range of bytes, as far as there are any."""
        with spool_errors(self._content, self._size):
            self._file.seek(start)
            return self._file.read(count)


def mapped_rows(
    blocks: Iterable[NDArray[np.int64]], columns: int, content: str
) -> NDArray[np.int64]:
    """Return int64[rows, columns], mapped from a temporary file: they need no file descriptor.

    Each block has whole rows.
    """
    import tempfile

    errors = partial(spool_errors, content, f"{8 * columns} bytes a document")
    count = 0
    with ExitStack() as opened:
        with errors():
            file = opened.enter_context(tempfile.NamedTemporaryFile())
        for block in blocks:
            with errors():
                file.write(np.ascontiguousarray(block).data)
            count += block.size
        with errors():
            file.flush()
            mapped = MappedFile(file.name).array(np.dtype(np.int64), count)
    return mapped[:].reshape(-1, columns)

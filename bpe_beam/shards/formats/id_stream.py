"""Shards whose first file is a stream of ids of one width: what such formats share.

The ids of all documents are in one file, one after the other, little-endian. The lengths of the
documents are in the format's other files. The writer keeps the lengths in a local temporary file
until then, since a gigabyte of empty lines has a billion documents.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats.batch_writer import BatchWriter, fitting_dtype
from bpe_beam.shards.formats.interface import ShardFiles, ShardReader
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

BLOCK = 1 << 18
"""The number of documents, or of tokens, that are processed at a time."""

_IDS_AT_ONCE = 1 << 21
"""The maximum ids of one write. A write of more than the buffer of a file skips the buffer."""

SPOOL_IN_MEMORY = 4 << 20
"""The bytes of a temporary file that are kept in memory, not on disk."""


def groups_of_documents(bounds: NDArray[np.int64], limit: int) -> Iterator[tuple[int, int]]:
    """Yield the first document of each batch and the one after it, in order.

    `bounds` is int64[documents + 1]: where each document begins, and the end of the last.
    """
    start, documents = 0, bounds.size - 1
    while start < documents:
        stop = int(np.searchsorted(bounds, bounds[start] + limit, side="right")) - 1
        stop = min(max(stop, start + 1), start + limit)
        yield start, stop
        start = stop


class IdStreamWriter(BatchWriter):
    """The base of such `ShardWriter`s. A subclass writes the documents' lengths to its files.

    The files become visible in the order of `suffixes`. After an exception, one remains only if a
    later file could not be published: an attempt never removes a file that another attempt may
    have published.

    Attributes:
        suffixes: The ends of the files' names: of the ids first, then of the other files.
        dtypes: The types of ids, see `fitting_dtype`.
        dtype: The type that this vocabulary needs.
    """

    suffixes: ClassVar[tuple[str, ...]]
    dtypes: ClassVar[tuple[np.dtype[Any], ...]]

    def __init__(self, storage: Storage, folder: str, name: str, vocab_size: int) -> None:
        super().__init__(name, vocab_size)
        self._storage = storage
        self._urls = [storage.join(folder, name + suffix) for suffix in self.suffixes]
        self.dtype = self.dtype_for(vocab_size)
        self._ids: HashingFile | None = None
        self._ids_stack = ExitStack()
        self._spools = ExitStack()

    @classmethod
    def dtype_for(cls, vocab_size: int) -> np.dtype[Any]:
        """Return the type of stored ids for a vocabulary: the narrowest, unless overridden."""
        return fitting_dtype(vocab_size, cls.dtypes)

    @abstractmethod
    def write_lengths(self, *files: HashingFile) -> None:
        """Write the documents' lengths to the files after the ids, once all are known."""

    def write_ids(self, stored: NDArray[Any]) -> None:
        """Append ids of type `dtype` to the file of ids."""
        self.ids_file().write(stored.view(np.uint8))

    def finish_ids(self) -> None:
        """Complete the file of ids, before `write_lengths`; nothing unless overridden."""
        return

    def __enter__(self) -> Self:
        # Closed by `end`.
        self._lengths = self.spool()
        return super().__enter__()

    def add(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None,
    ) -> None:
        """See `BatchWriter.add`."""
        for start in range(0, ids.size, _IDS_AT_ONCE):
            self.write_ids(ids[start : start + _IDS_AT_ONCE].astype(self.dtype))
        with self._spooling():
            self._lengths.write(np.diff(offsets).astype("<i4").tobytes())

    def end(self, *exception: Any) -> ShardFiles | None:
        """See `BatchWriter.end`."""
        with self._spools:
            if exception[0] is not None:
                self._ids_stack.__exit__(*exception)
                return None
            with self._ids_stack:
                self.check_whole()
                files = self._publish() if self.tokens else ()
                return ShardFiles(self.documents, self.tokens, files)

    def ids_file(self) -> HashingFile:
        """Return the open file of ids; it is opened at the first call."""
        if self._ids is None:
            self._ids = HashingFile(
                self._ids_stack.enter_context(self._storage.create(self._urls[0]))
            )
        return self._ids

    def spool(self) -> tempfile.SpooledTemporaryFile[bytes]:
        """Return a new temporary file that `end` closes."""
        return self._spools.enter_context(tempfile.SpooledTemporaryFile(max_size=SPOOL_IN_MEMORY))

    def lengths(self) -> Iterator[NDArray[np.int32]]:
        """Yield the lengths of all documents in blocks."""
        with self._spooling():
            self._lengths.seek(0)
            while data := self._lengths.read(4 * BLOCK):
                yield np.frombuffer(data, dtype="<i4")

    def bounds(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield where documents begin and end, in tokens of the shard, in blocks."""
        start = 0
        for lengths in self.lengths():
            ends = start + np.cumsum(lengths, dtype=np.int64)
            start = int(ends[-1])
            yield ends - lengths, ends

    def _publish(self) -> tuple[FileInfo, ...]:
        self.finish_ids()
        with ExitStack() as stack:
            # Closed in the opposite order, so that the last file becomes visible last.
            opened = [
                stack.enter_context(self._storage.create(url)) for url in reversed(self._urls[1:])
            ]
            opened.reverse()
            files = [HashingFile(file) for file in opened]
            self.write_lengths(*files)
            for file in opened:
                file.flush()
            # Each file is complete under its attempt's name: only renames can fail now. A reader
            # that sees the last file sees all. If a rename fails, the earlier files stay: another
            # attempt at the same shard may have published them.
            self._ids_stack.pop_all().close()
        return tuple(
            FileInfo.written(self.name + suffix, file)
            for suffix, file in zip(self.suffixes, [self.ids_file(), *files], strict=True)
        )

    @contextmanager
    def _spooling(self) -> Iterator[None]:
        """Name the temporary file of lengths in the errors of the block."""
        with spool_errors(f"the document lengths of {self.name}", "4 bytes a document"):
            yield


@contextmanager
def spool_errors(content: str, size: str) -> Iterator[None]:
    """Make an OSError of the block a DataError that names a temporary file."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{tempfile.gettempdir()}: the temporary file with {content} failed: "
            f"{error.strerror or error}; it needs {size}, and the variable TMPDIR chooses another "
            "folder"
        ) from error


class IdStreamReader(ABC):
    """The base of such `ShardReader`s. A subclass opens the files and sets the attributes.

    The ids begin at byte `ids_at` of the file `ids`; `count` is the number of documents.
    """

    ids: RangeFile
    ids_at: ClassVar[int] = 0
    dtype: np.dtype[Any]
    count: int
    token_count: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close all files."""

    def __len__(self) -> int:
        return self.count

    @abstractmethod
    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        """See `ShardReader.lengths`."""

    @abstractmethod
    def document(self, index: int) -> NDArray[np.uint32]:
        """See `ShardReader.document`."""

    def tokens(self, start: int, stop: int) -> NDArray[np.uint32]:
        """See `ShardReader.tokens`."""
        check_range("tokens", start, stop, self.token_count)
        width = self.dtype.itemsize
        at = self.ids_at + start * width
        ids = np.frombuffer(self.ids.read(at, (stop - start) * width), self.dtype)
        if ids.size and ids.min() < 0:
            bad = int(np.argmax(ids < 0))
            raise DataError(
                f"{self.ids.url}: byte {at + bad * width}: the id is {int(ids[bad])}; expected 0 "
                "or more"
            )
        return ids.astype(np.uint32)

    def locate(self, token: int) -> tuple[int, int]:
        """Return the document of a token of the shard, and the token's position in it."""
        check_range("tokens", token, token + 1, self.token_count)
        start = 0
        for first in range(0, self.count, BLOCK):
            lengths = self.lengths(first, min(first + BLOCK, self.count))
            ends = start + np.cumsum(lengths, dtype=np.int64)
            if token < ends[-1]:
                row = int(np.searchsorted(ends, token, side="right"))
                return first + row, token - int(ends[row] - lengths[row])
            start = int(ends[-1])
        raise DataError(f"{self.ids.url}: the lengths changed while the shard was read")


def check_range(what: str, start: int, stop: int, count: int) -> None:
    """Refuse a range of documents or tokens that is not within a shard."""
    if not 0 <= start <= stop <= count:
        raise IndexError(f"{what} must be a range within 0 to {count}, got {start} to {stop}")


class IdStreamCheck:
    """A `ShardCheck` of the ids in their file and of their width."""

    def __init__(
        self,
        name: str,
        vocab_size: int,
        writer: type[IdStreamWriter],
        *,
        ids_at: int = 0,
        width_at: str | None = None,
    ) -> None:
        self._name = name
        self._vocab_size = vocab_size
        self._suffix = writer.suffixes[0]
        self._dtype = writer.dtype_for(vocab_size)
        self._ids_at = ids_at
        self._width_at = self._suffix if width_at is None else width_at
        self._skip = ids_at
        self._tokens = 0
        self._first: tuple[int, int] | None = None  # (position in the shard, id)
        self._count = 0

    def add(self, suffix: str, block: bytes) -> None:
        """See `ShardCheck.add`."""
        if suffix != self._suffix:
            return
        skipped = min(self._skip, len(block))
        self._skip -= skipped
        # int32 is read as uint32: a negative id is far too great.
        width = self._dtype.itemsize
        values = np.frombuffer(block, f"<u{width}", (len(block) - skipped) // width, skipped)
        if values.size and int(values.max()) >= self._vocab_size:
            bad = np.flatnonzero(values >= self._vocab_size)
            self._first = self._first or (self._tokens + int(bad[0]), int(values[bad[0]]))
            self._count += bad.size
        self._tokens += values.size

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        """See `ShardCheck.problems`."""
        position = ""
        if isinstance(reader, IdStreamReader):
            if reader.dtype != self._dtype:
                # `add` read other bytes as ids.
                yield (
                    f"{self._name}{self._width_at}: ids are stored as {reader.dtype}; expected "
                    f"{self._dtype} for a vocabulary of {self._vocab_size}"
                )
                return
            if self._first:
                position = "document {}, token {}, ".format(*reader.locate(self._first[0]))
        if self._first:
            at, value = self._first
            yield (
                f"{self._name}{self._suffix}: {position}byte "
                f"{self._ids_at + at * self._dtype.itemsize}: the id is {value}; expected 0 to "
                f"{self._vocab_size - 1}; {self._count} such ids in this shard"
            )

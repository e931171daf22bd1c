"""The files of shards: read by ranges, or at any position of a finished folder.

At any position local files are mapped into memory: nothing is read before it is used, and the
operating system keeps what it has room for. The maps need no file descriptors, so any number of
shards may be open. Remote files are read by blocks.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import HUGE_BYTES, DataError
from bpe_beam.shards.block_cache import BlockCache, RecentValues
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.storage.names import is_local, local_path

if TYPE_CHECKING:
    from bpe_beam.shards.shard_rows import Shard
    from bpe_beam.storage.remote_file import RangeReader

Ids = NDArray[Any]  # ids of the type that was asked for
IdType = np.dtype[Any]


class IdArray(Protocol):
    """An array of integers in a file: read where it is sliced. Slices end with the array."""

    def __getitem__(self, bounds: slice, /) -> NDArray[Any]: ...


class Ranges(Protocol):
    """A file that is read by ranges."""

    url: str
    size: int

    def read(self, start: int, count: int) -> bytes:
        """Return a range of bytes."""


class ShardFile(Ranges, Protocol):
    """A file of a shard. Arrays and streams of a file that is `mapped` copy nothing."""

    mapped: bool

    def array(self, dtype: np.dtype[Any], count: int, start: int = 0) -> IdArray:
        """Return an array in the file."""

    def stream(self) -> pa.NativeFile:
        """Return the file as pyarrow reads it."""


class RangeFile:
    """A file that is read by ranges, best in order; a context manager.

    Every failure is a DataError that names file and byte.
    """

    def __init__(self, storage: Storage, url: str) -> None:
        self.url = redact(url)
        self.opened_again = partial(RangeFile, storage, url)
        stored, self._file = storage.open_with_stat(url)
        self.size = stored.size

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


class MappedFile:
    """A `ShardFile` of this machine."""

    mapped = True

    def __init__(self, path: str) -> None:
        self.url = path
        with named_errors("read", path), pa.memory_map(str(local_path(path))) as file:
            self._content = file.read_buffer()
        self.size = self._content.size

    def read(self, start: int, count: int) -> bytes:
        _check_within(self, start, count)
        return bytes(memoryview(self._content)[start : start + count])

    def array(self, dtype: np.dtype[Any], count: int, start: int = 0) -> IdArray:
        _check_within(self, start, count * dtype.itemsize)
        if not count:
            return np.empty(0, dtype)
        ids: NDArray[Any] = np.frombuffer(self._content, dtype, count, start)
        return ids

    def stream(self) -> pa.NativeFile:
        return pa.BufferReader(self._content)


class RemoteFile:
    """A `ShardFile` of a store, read by blocks."""

    mapped = False

    def __init__(self, url: str, ranges: RangeReader, blocks: BlockCache) -> None:
        self.url = redact(url)
        self.size = ranges.size
        self._ranges, self._blocks = ranges, blocks

    def read(self, start: int, count: int) -> bytes:
        _check_within(self, start, count)
        return self._blocks.read(self._ranges, start, start + count)

    def array(self, dtype: np.dtype[Any], count: int, start: int = 0) -> IdArray:
        _check_within(self, start, count * dtype.itemsize)
        return FileArray(self, dtype, count, start)

    def stream(self) -> pa.NativeFile:
        return pa.PythonFile(_RemoteStream(self), mode="r")


class FileArray:
    """An `IdArray` of a file that is read by ranges."""

    def __init__(self, file: Ranges, dtype: np.dtype[Any], count: int, start: int) -> None:
        self._file, self._dtype, self._count, self._start = file, dtype, count, start

    def __getitem__(self, bounds: slice, /) -> NDArray[Any]:
        start, stop, _ = bounds.indices(self._count)
        width = self._dtype.itemsize
        data = self._file.read(self._start + start * width, max(stop - start, 0) * width)
        return np.frombuffer(data, self._dtype)


class _RemoteStream(io.RawIOBase):
    """A remote file with a position."""

    def __init__(self, file: RemoteFile) -> None:
        super().__init__()
        self._file, self._position = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position; nothing is read yet."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}
        self._position = max(base[whence] + offset, 0)
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes, all of them but at the end of the file."""
        left = max(self._file.size - self._position, 0)
        count = left if size is None or size < 0 else min(size, left)
        data = self._file.read(self._position, count)
        self._position += count
        return data


class StoredShard:
    """A shard whose files are opened where they are needed."""

    def __init__(
        self,
        storage: Storage,
        folder: str,
        entry: Shard,
        vocab_size: int,
        blocks: BlockCache,
        groups: RecentValues[Any],
    ) -> None:
        self._storage, self._folder, self._blocks = storage, folder, blocks
        self.entry = entry
        self.vocab_size = vocab_size
        self.groups = groups

    def file(self, suffix: str) -> ShardFile:
        """Open the file with this suffix, one of the format's."""
        name = self.entry.name + suffix
        url = self._storage.join(self._folder, name)
        file: ShardFile
        if is_local(url):
            file = MappedFile(url)
        else:
            file = RemoteFile(url, self._storage.remote.open_ranges(url), self._blocks)
        (expected,) = (each.bytes for each in self.entry.files if each.name == name)
        check_size(file.url, file.size, expected)
        return file


def check_size(url: str, size: int, expected: int) -> None:
    """Refuse a file of another size than its manifest says."""
    if size != expected:
        raise DataError(
            f"{url}: has {size} bytes; the manifest says {expected}: the folder is damaged, and "
            "the command that wrote it repairs it"
        )


def check_counts(url: str, documents: int, tokens: int, shard: StoredShard) -> None:
    """Refuse a shard of another size than the manifest says."""
    for actual, expected, what in (
        (documents, shard.entry.documents, "documents"),
        (tokens, shard.entry.tokens, "tokens"),
    ):
        if actual != expected:
            raise DataError(f"{url}: has {actual} {what}; the manifest says {expected}")


def starts_within(bounds: NDArray[Any], start: int, stop: int) -> NDArray[np.int64]:
    """Return where documents with tokens begin, in a range of ids.

    `bounds` is int[documents + 1]: where documents begin, and where the last one ends.
    """
    low, high = np.searchsorted(bounds[:-1], (start, stop))
    begins_and_end = bounds[low : high + 1].astype(np.int64)
    return begins_and_end[:-1][begins_and_end[:-1] < begins_and_end[1:]]


class ShardAccess(Protocol):
    """Reads documents and ids of one shard at any position, by several threads.

    Opening reads no more than heads of files, if the format allows that. What the files say is
    checked against the manifest, not against their hashes: `verify` does that.
    """

    def document(self, index: int, dtype: IdType) -> Ids:
        """Return the ids of one document, a new array."""

    def documents(self, start: int, stop: int, limit: int, dtype: IdType) -> Sequence[Ids]:
        """Return the ids of documents that follow each other, each a new array."""

    def tokens(self, start: int, stop: int, dtype: IdType) -> Ids:
        """Return ids of the shard, a new array."""

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return int64[n]: where documents with tokens begin, in a range of the shard's ids."""


@runtime_checkable
class LabelledAccess(ShardAccess, Protocol):
    """A `ShardAccess` of a format that stores labels."""

    def labels(self, index: int) -> JsonObject:
        """Return the labels of a document by name."""


def _check_within(file: ShardFile, start: int, count: int) -> None:
    if start + count > file.size:
        raise DataError(
            f"{file.url}: ends at byte {file.size}; bytes up to {start + count} were expected"
        )

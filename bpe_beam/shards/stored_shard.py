"""The files of shards: read by ranges, or at any position of a finished folder.

At any position local files are mapped into memory: nothing is read before it is used, and the
operating system keeps what it has room for. The maps need no file descriptors, so any number of
shards may be open. Remote files are read by blocks.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import HUGE_BYTES, DataError
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.storage.names import is_local, local_path

if TYPE_CHECKING:
    from bpe_beam.shards.shard_rows import Shard
    from bpe_beam.storage.remote_file import RangeReader

Ids = NDArray[Any]  # ids of the type that was asked for
IdType = np.dtype[Any]

V = TypeVar("V")

BLOCK_BYTES = 256 << 10  # the size of a block: every read of a remote file is one block or more

BLOCKS_AHEAD = 16
"""The number of blocks that are fetched ahead after a block that follows a block in memory."""

THREADS = 16  # the number of requests at the same time


class RecentValues(Generic[V]):
    """Values by key, up to a sum of their sizes; the least recently used are dropped first.

    Threads may share it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._lock = RLock()
        self._values: OrderedDict[object, tuple[V, int]] = OrderedDict()

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def get(self, key: object) -> V | None:
        """Return the value of a key, which is then the most recently used; None without one."""
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            self._values.move_to_end(key)
            return entry[0]

    def put(self, key: object, value: V, size: int) -> None:
        """Add a value, and drop others beyond the limit."""
        with self._lock:
            self.drop(key)
            self._values[key] = value, size
            self._used += size
            while self._used > self._limit and len(self._values) > 1:
                self._used -= self._values.popitem(last=False)[1][1]

    def drop(self, key: object) -> None:
        """Remove a value, if the key has one."""
        with self._lock:
            self._used -= self._values.pop(key, (None, 0))[1]


class BlockCache:
    """The blocks of all remote files of a data set. Threads may share it."""

    def __init__(self, limit: int) -> None:
        self._blocks: RecentValues[Future[bytes]] = RecentValues(limit)
        self._ahead = max(1, min(BLOCKS_AHEAD, limit // BLOCK_BYTES // 2))
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(THREADS)

    def read(self, file: RangeReader, start: int, end: int) -> bytes:
        """Return the bytes of a file from `start` to `end`."""
        if start >= end:
            return b""
        data = bytearray()
        for number in range(start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1):
            offset = number * BLOCK_BYTES
            data += self._block(file, number)[max(start - offset, 0) : end - offset]
        return bytes(data)

    def _block(self, file: RangeReader, number: int) -> bytes:
        key = file, number
        with self._lock:
            future = self._blocks.get(key)
            if future is None:
                future = self._fetch(file, number)
            if (file, number - 1) in self._blocks:
                self._fetch_ahead(file, number + 1)
        try:
            return future.result()
        except BaseException:
            with self._lock:  # the next call tries again
                if self._blocks.get(key) is future:
                    self._blocks.drop(key)
            raise

    def _fetch_ahead(self, file: RangeReader, number: int) -> None:
        """Fetch the blocks from `number` on, unless half of them are in memory."""
        blocks = -(-file.size // BLOCK_BYTES)
        if number + self._ahead // 2 < blocks and (file, number + self._ahead // 2) in self._blocks:
            return
        for each in range(number, min(number + self._ahead, blocks)):
            if (file, each) not in self._blocks:
                self._fetch(file, each)

    def _fetch(self, file: RangeReader, number: int) -> Future[bytes]:
        start = number * BLOCK_BYTES
        end = min(start + BLOCK_BYTES, file.size)
        future = self._pool.submit(file.read, start, end)
        self._blocks.put((file, number), future, end - start)
        return future


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
            file = RemoteFile(url, self._storage.open_ranges(url), self._blocks)
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

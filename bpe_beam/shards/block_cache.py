"""Blocks of remote files in memory: read ahead, and the least recently used dropped first."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock, RLock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from bpe_beam.storage.remote_file import RangeReader

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

"""Blocks of remote files: fetched once, read ahead, within a limit, and again after a failure."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import pytest

from bpe_beam.errors import DataError
from bpe_beam.shards.block_cache import BLOCK_BYTES, BLOCKS_AHEAD, BlockCache, RecentValues
from bpe_beam.storage.remote_file import RangeReader, RangeSource
from bpe_beam.storage.stored_file import StoredFile

CONTENT = random.Random(1).randbytes(40 * BLOCK_BYTES + 1000)


class Store:
    """A file of a store, and how often each of its ranges was read."""

    def __init__(self) -> None:
        self.fetched: Counter[int] = Counter()
        self.broken = False
        self.gate = Event()
        self.gate.set()
        self._lock = Lock()
        file = StoredFile("memory://store/file", len(CONTENT))
        self.reader = RangeReader(lambda: RangeSource(file, self._fetch), file.url, ())

    def _fetch(self, start: int, end: int) -> bytes:
        self.gate.wait(60)
        with self._lock:
            self.fetched[start // BLOCK_BYTES] += 1
        if self.broken:
            raise PermissionError("no")
        return CONTENT[start:end]


def test_any_range_is_that_of_the_file() -> None:
    store, cache, made = Store(), BlockCache(4 << 20), random.Random(2)
    for _ in range(300):
        start = made.randrange(len(CONTENT))
        end = min(start + made.choice((0, 1, 100, 300_000, 2_000_000)), len(CONTENT))
        assert cache.read(store.reader, start, end) == CONTENT[start:end]


def test_a_file_that_is_read_in_order_is_fetched_once_and_ahead() -> None:
    store, cache = Store(), BlockCache(16 << 20)
    found = b"".join(
        cache.read(store.reader, at, min(at + 5_000, len(CONTENT)))
        for at in range(0, len(CONTENT), 5_000)
    )
    assert found == CONTENT
    assert store.fetched == Counter(range(41))


def test_the_next_blocks_are_fetched_before_they_are_needed() -> None:
    store, cache = Store(), BlockCache(64 << 20)
    cache.read(store.reader, 0, 10)
    cache.read(store.reader, BLOCK_BYTES, BLOCK_BYTES + 10)
    cache._pool.shutdown()  # waits for what is under way
    assert set(store.fetched) == set(range(BLOCKS_AHEAD + 2))


def test_threads_that_need_one_block_wait_for_one_request() -> None:
    store, cache = Store(), BlockCache(4 << 20)
    store.gate.clear()
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(cache.read, store.reader, at, at + 100) for at in range(8)]
        store.gate.set()
        assert [each.result() for each in found] == [CONTENT[at : at + 100] for at in range(8)]
    assert store.fetched == {0: 1}


def test_a_failed_block_is_fetched_again() -> None:
    store, cache = Store(), BlockCache(4 << 20)
    store.broken = True
    with pytest.raises(DataError, match="memory://store/file"):
        cache.read(store.reader, 0, 10)
    store.broken = False
    assert cache.read(store.reader, 0, 10) == CONTENT[:10]


def test_the_least_recently_used_values_are_dropped() -> None:
    values: RecentValues[str] = RecentValues(10)
    for key, size in (("a", 4), ("b", 4)):
        values.put(key, key.upper(), size)
    assert values.get("a") == "A"
    values.put("c", "C", 4)
    assert [values.get(key) for key in "abc"] == ["A", None, "C"]
    values.put("d", "D", 50)
    assert [values.get(key) for key in "acd"] == [None, None, "D"]
    values.put("d", "E", 3)
    values.put("e", "F", 7)
    assert [values.get(key) for key in "de"] == ["E", "F"]
    values.drop("d")
    values.put("f", "G", 3)
    assert [values.get(key) for key in "def"] == [None, "F", "G"]

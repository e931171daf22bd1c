"""The kernels of merge rounds as Python sees them: what they give, what they refuse, threads."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bpe_beam import _native

pytestmark = pytest.mark.quick

AB = np.array([[1, 2, 300]], np.uint32)


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.uint32)


def counts(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def packed(*words: list[int]) -> tuple[memoryview, np.ndarray]:
    bounds = np.cumsum([0, *map(len, words)], dtype=np.int64)
    return _native.pack_symbols(np.array([each for word in words for each in word], "u4"), bounds)


def words_of(data: Any, offsets: np.ndarray) -> list[list[int]]:
    symbols, bounds = _native.unpack_symbols(data, offsets)
    return [symbols[start:end].tolist() for start, end in itertools.pairwise(bounds)]


def test_packing() -> None:
    data, offsets = packed([1, 300], [], [2**32 - 1])
    assert bytes(data) == b"\x01\xac\x02\xff\xff\xff\xff\x0f"
    assert offsets.tolist() == [0, 3, 3, 8]
    assert offsets.dtype == np.int64
    assert words_of(data, offsets) == [[1, 300], [], [2**32 - 1]]
    assert words_of(data, offsets[1:]) == [[], [2**32 - 1]]
    symbols, bounds = _native.unpack_symbols(data, offsets[1:])
    assert (symbols.dtype, bounds.dtype, bounds.tolist()) == (np.uint32, np.int64, [0, 0, 1])
    part, part_offsets = _native.pack_symbols(ids(7, 8, 300), counts(1, 2, 3))
    assert (bytes(part), part_offsets.tolist()) == (b"\x08\xac\x02", [0, 1, 3])


@pytest.mark.parametrize("word", [b"\x80", b"a\xff\xff", b"\xff\xff\xff\xff\x10", b"\x80" * 9])
@pytest.mark.parametrize(
    "take",
    [
        _native.unpack_symbols,
        lambda *words: _native.PairTable().add_words(*words, counts(1, 1)),  # type: ignore[call-arg]
        lambda *words: _native.Rewriter([]).rewrite(*words, counts(1, 1)),  # type: ignore[call-arg]
        lambda *words: _native.FrequentPairs(ids(), ids()).segments(*words, counts(1, 1), False),  # type: ignore[call-arg]
    ],
    ids=["unpack_symbols", "add_words", "rewrite", "cut"],
)
def test_words_that_are_none_are_named(take: Callable[..., object], word: bytes) -> None:
    with pytest.raises(
        ValueError, match="word 1 is not a packed word: a symbol is incomplete or over"
    ):
        take(b"a" + word, counts(0, 1, 1 + len(word)))


def test_counts_that_are_none() -> None:
    words = packed([1, 2])
    for take in (
        lambda n: _native.PairTable().add_words(*words, n),
        lambda n: _native.Rewriter([]).rewrite(*words, n),
        lambda n: _native.FrequentPairs(ids(), ids()).segments(*words, n, False),
    ):
        with pytest.raises(ValueError, match="the count of word 0 must be at least 1, got 0"):
            take(counts(0))
        with pytest.raises(ValueError, match="counts must have 1 items, got 2"):
            take(counts(1, 1))


class TestPairTable:
    def test_what_it_gives(self) -> None:
        table = _native.PairTable()
        table.add_words(*packed([7, 7, 7], [1, 2], []), counts(10, 2**40, 1))
        table.add(ids(1, 5), ids(2, 300), counts(1, 6))
        assert len(table) == 3
        assert table.memory_bytes >= 48
        lefts, rights, totals, floor = table.frequent(7, 9)
        assert (lefts.dtype, rights.dtype, totals.dtype) == (np.uint32, np.uint32, np.int64)
        assert (lefts.tolist(), rights.tolist()) == ([1, 7], [2, 7])
        assert (totals.tolist(), floor) == ([2**40 + 1, 20], 7)
        assert table.frequent(0, 2)[3] == 7
        assert [each.tolist() for each in table.best(2)] == [[1, 7], [2, 7], [2**40 + 1, 20]]
        parts = table.split(5)
        table.clear()
        assert sorted(left for part in parts for left in part[0].tolist()) == [1, 5, 7]
        assert len(table) == 0

    def test_ranks(self) -> None:
        table = _native.PairTable()
        table.add(ids(0, 1, 2, 2), ids(0, 1, 2, 1), counts(4, 4, 4, 4))
        assert table.best(9)[0].tolist() == [0, 1, 2, 2]
        lefts, rights, _ = table.best(3, ids(3, 1, 2))
        assert (lefts.tolist(), rights.tolist()) == ([1, 2, 2], [1, 1, 2])
        with pytest.raises(ValueError, match="a pair has the symbol 2: ranks has 2 items"):
            table.best(3, ids(0, 1))

    def test_widths(self) -> None:
        words = packed([0, 0, 1], [1])
        table = _native.PairTable()
        table.add_words(*words, counts(3, 3), ids(1, 2), 3)
        assert [each.tolist() for each in table.best(9)] == [[0], [0], [3]]
        with pytest.raises(ValueError, match="word 0 has the symbol 1: widths has 1 items"):
            table.add_words(*words, counts(3, 3), ids(1), 3)
        for half in ({"widths": ids(1, 2)}, {"max_length": 3}):
            with pytest.raises(ValueError, match="must be set together"):
                table.add_words(*words, counts(3, 3), **half)

    def test_what_it_refuses(self) -> None:
        table = _native.PairTable()
        table.add(ids(1), ids(1), counts(2**63 - 1))
        with pytest.raises(OverflowError, match="beyond 64 bits"):
            table.add(ids(1), ids(1), counts(1))
        for columns in ((ids(1, 2), ids(1), counts(1)), (ids(1), ids(), counts(1))):
            with pytest.raises(ValueError, match="must have 1 items"):
                table.add(*columns)
        with pytest.raises(ValueError, match="count must be at least 1"):
            table.add(ids(1), ids(1), counts(0))
        with pytest.raises(ValueError, match="added to itself"):
            table.add_table(table)
        with pytest.raises(ValueError, match="shards must be at least 1"):
            table.split(0)
        with pytest.raises(TypeError):
            table.add(counts(1), ids(1), counts(1))

    @pytest.mark.parametrize("add", ["add_words", "add_table"])
    def test_threads_that_share_one(self, add: str) -> None:
        """They wait for each other: nothing is lost."""
        made = np.random.default_rng(1).integers(0, 300, 60_000).astype("u4")
        words = _native.pack_symbols(made, np.arange(0, 60_001, 60, dtype=np.int64))
        table, other = _native.PairTable(), _native.PairTable()
        other.add_words(*words, np.ones(1000, np.int64))

        def work() -> None:
            for _ in range(50):
                if add == "add_words":
                    table.add_words(*words, np.ones(1000, np.int64))
                else:
                    table.add_table(other)
                    other.add_table(_native.PairTable())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(part[2].sum() for part in table.split(3)) == 200 * 1000 * 59


class TestRewriter:
    def test_what_it_gives(self) -> None:
        words = packed([1, 2, 3], [1, 2], [3, 3], [3], [])
        rewriter = _native.Rewriter([AB, np.array([[300, 3, 2**31]], np.uint32)])
        data, offsets, left = rewriter.rewrite(*words, counts(5, 6, 7, 8, 9))
        assert words_of(data, offsets) == [[3, 3]]
        assert left.tolist() == [7]
        data, offsets, left = _native.Rewriter([AB]).rewrite(*words, counts(5, 6, 7, 8, 9))
        assert words_of(data, offsets) == [[300, 3], [3, 3]]
        assert left.tolist() == [5, 7]

    @pytest.mark.parametrize(
        "batch", [ids(1, 2, 3), np.zeros((2, 2), "u4"), np.zeros((1, 3, 1), "u4")]
    )
    def test_batches_that_are_none(self, batch: np.ndarray) -> None:
        with pytest.raises(ValueError, match="left, right, joined"):
            _native.Rewriter([batch])


class TestFrequentPairs:
    def test_what_it_gives(self) -> None:
        words = packed([1, 2, 300, 1], [2], [300, 1, 2])
        frequent = _native.FrequentPairs(ids(1, 1), ids(2, 300))
        data, offsets, left = frequent.segments(*words, counts(5, 6, 7), False)
        assert (words_of(data, offsets), left.tolist()) == ([[1, 2], [1, 2]], [5, 7])
        data, offsets, left = frequent.segments(*words, counts(5, 6, 7), True)
        assert words_of(data, offsets) == [[1, 2], [300], [1], [2], [300], [1, 2]]
        assert left.tolist() == [5, 5, 5, 6, 7, 7]

    def test_what_it_refuses(self) -> None:
        with pytest.raises(ValueError, match="rights must have 2 items, got 1"):
            _native.FrequentPairs(ids(1, 2), ids(1))

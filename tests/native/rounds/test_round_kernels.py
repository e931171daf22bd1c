"""The kernels of merge rounds against plain Python, over small alphabets and large."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_beam import _native

Word = tuple[list[int], int]

SYMBOLS = st.one_of(st.integers(0, 2), st.integers(0, 300), st.integers(0, 2**32 - 2))
WORDS = st.lists(st.tuples(st.lists(SYMBOLS, max_size=60), st.integers(1, 2**40)), max_size=12)
FEW = st.lists(st.tuples(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 9)), max_size=12)
SOME = st.one_of(WORDS, FEW)


def packed(words: list[Word]) -> tuple[memoryview, np.ndarray, np.ndarray]:
    bounds = np.cumsum([0, *(len(symbols) for symbols, _ in words)], dtype=np.int64)
    flat = np.array([symbol for symbols, _ in words for symbol in symbols], np.uint32)
    counts = np.array([count for _, count in words], np.int64)
    return *_native.pack_symbols(flat, bounds), counts


def unpacked(data: memoryview, offsets: np.ndarray, counts: np.ndarray) -> list[Word]:
    symbols, bounds = _native.unpack_symbols(data, offsets)
    return [
        (symbols[bounds[i] : bounds[i + 1]].tolist(), count)
        for i, count in enumerate(counts.tolist())
    ]


def pairs_of(words: list[Word]) -> Counter[tuple[int, int]]:
    pairs: Counter[tuple[int, int]] = Counter()
    for symbols, count in words:
        for pair in itertools.pairwise(symbols):
            pairs[pair] += count
    return pairs


def table_of(words: list[Word]) -> _native.PairTable:
    table = _native.PairTable()
    table.add_words(*packed(words))
    return table


def rows(columns: tuple[np.ndarray, ...]) -> list[tuple[tuple[int, int], int]]:
    lefts, rights, counts = (each.tolist() for each in columns[:3])
    return list(zip(zip(lefts, rights, strict=True), counts, strict=True))


@settings(deadline=None)
@given(SOME)
def test_packing(words: list[Word]) -> None:
    assert unpacked(*packed(words)) == words


@settings(deadline=None)
@given(SOME, SOME, st.integers(1, 9))
def test_counting(first: list[Word], second: list[Word], shards: int) -> None:
    table = table_of(first)
    table.add_table(table_of(second))
    expected = pairs_of(first) + pairs_of(second)
    parts = [rows(part) for part in table.split(shards)]
    assert dict(itertools.chain.from_iterable(parts)) == expected
    assert sum(map(len, parts)) == len(expected) == len(table)
    assert all(part == sorted(part) for part in parts)
    again = _native.PairTable()
    for part in table.split(shards):
        again.add(*part)
    assert [rows(part) for part in again.split(shards)] == parts


@settings(deadline=None)
@given(FEW, st.integers(0, 30), st.integers(0, 20))
def test_frequent(words: list[Word], floor: int, limit: int) -> None:
    expected = floor
    pairs = pairs_of(words)
    while sum(count >= expected for count in pairs.values()) > limit:
        expected += 1
    found = table_of(words).frequent(floor, limit)
    assert found[3] == expected
    assert rows(found) == sorted(each for each in pairs.items() if each[1] >= expected)


@settings(deadline=None)
@given(FEW, st.integers(0, 20), st.permutations(range(4)), st.booleans())
def test_best(words: list[Word], limit: int, ranks: list[int], ranked: bool) -> None:
    order = ranks if ranked else range(4)
    expected = sorted(
        pairs_of(words).items(), key=lambda it: (-it[1], order[it[0][0]], order[it[0][1]])
    )
    given_ranks = np.array(ranks, np.uint32) if ranked else None
    assert rows(table_of(words).best(limit, given_ranks)) == expected[:limit]


@settings(deadline=None)
@given(FEW, st.lists(st.integers(0, 5), min_size=4, max_size=4), st.integers(0, 12))
def test_widths(words: list[Word], widths: list[int], max_length: int) -> None:
    table = _native.PairTable()
    table.add_words(*packed(words), np.array(widths, np.uint32), max_length)
    joined = {pair: widths[pair[0]] + widths[pair[1]] for pair in pairs_of(words)}
    assert rows(table.split(1)[0]) == sorted(
        each
        for each in pairs_of(words).items()
        if joined[each[0]] < max_length or joined[each[0]] == 2
    )


@settings(deadline=None)
@given(SOME, st.data(), st.booleans())
def test_cutting(words: list[Word], data: st.DataObject, singles: bool) -> None:
    pairs = sorted(pairs_of(words))
    frequent = set(data.draw(st.lists(st.sampled_from(pairs)))) if pairs else set()
    expected = []
    for symbols, count in words:
        ends = [i for i in range(1, len(symbols)) if (symbols[i - 1], symbols[i]) not in frequent]
        bounds = [0, *ends, len(symbols)]
        for start, end in itertools.pairwise(bounds):
            if end - start > 1 or (singles and end > start):
                expected.append((symbols[start:end], count))
    lefts, rights = (np.array([pair[side] for pair in frequent], np.uint32) for side in (0, 1))
    found = _native.FrequentPairs(lefts, rights).segments(*packed(words), singles)
    assert unpacked(*found) == expected


def rewritten(symbols: list[int], batch: list[tuple[int, int, int]]) -> list[int]:
    """By the definition: the lowest rank first, the leftmost of equals."""
    ranks = {(left, right): rank for rank, (left, right, _) in enumerate(batch)}
    symbols = list(symbols)
    while True:
        found = [
            (ranks[pair], place)
            for place, pair in enumerate(itertools.pairwise(symbols))
            if pair in ranks
        ]
        if not found:
            return symbols
        rank, place = min(found)
        symbols[place : place + 2] = [batch[rank][2]]


ROWS = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))


@settings(deadline=None, max_examples=200)
@given(FEW, st.lists(st.lists(ROWS, max_size=8), max_size=3))
def test_rewriting(words: list[Word], batches: list[list[tuple[int, int, int]]]) -> None:
    expected = []
    for symbols, count in words:
        for batch in batches:
            symbols = rewritten(symbols, batch)
        if len(symbols) > 1:
            expected.append((symbols, count))
    rewriter = _native.Rewriter([np.array(each, np.uint32).reshape(-1, 3) for each in batches])
    assert unpacked(*rewriter.rewrite(*packed(words))) == expected

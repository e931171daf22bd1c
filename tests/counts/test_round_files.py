"""The table of pairs and counts against `collections.Counter`."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bpe_beam import _native
from bpe_beam.counts.round_files import (
    PAIR_SCHEMA,
    Columns,
    PairCounts,
    decode_pairs,
)
from bpe_beam.counts.word_table import BLOCK_BYTES, PARTITIONS, encode_block
from bpe_beam.errors import DataError
from bpe_beam.tokenizer.components.byte_level import to_chars

pytestmark = pytest.mark.quick

Words = list[tuple[list[int], int]]
MOST = 2**63 - 1


def columns_of(words: Words) -> Columns:
    bounds = np.cumsum([0, *(len(symbols) for symbols, _ in words)], dtype=np.int64)
    flat = np.array([symbol for symbols, _ in words for symbol in symbols], np.uint32)
    data, offsets = _native.pack_symbols(flat, bounds)
    return data, offsets, np.array([count for _, count in words], np.int64)


def random_symbols(seed: int, symbols: int = 300, words: int = 400) -> Words:
    made = random.Random(seed)
    return [
        ([made.randrange(symbols) for _ in range(made.randint(0, 12))], made.randint(1, 1000))
        for _ in range(words)
    ]


def pairs_of(words: Iterable[tuple[Sequence[Any], int]]) -> Counter[Any]:
    pairs: Counter[Any] = Counter()
    for symbols, count in words:
        for pair in itertools.pairwise(symbols):
            pairs[pair] += count
    return pairs


def filled(*parts: Words) -> PairCounts:
    counts = PairCounts()
    for words in parts:
        counts.add_words(columns_of(words))
    return counts


def rows(block: pa.RecordBatch) -> list[tuple[tuple[int, int], int]]:
    lefts, rights, counts = (column.to_pylist() for column in block.columns)
    return list(zip(zip(lefts, rights, strict=True), counts, strict=True))


def block_of(*pairs: tuple[int, int, int]) -> pa.RecordBatch:
    columns = list(zip(*pairs, strict=True)) or [[], [], []]  # type: ignore[list-item]
    return pa.record_batch([list(column) for column in columns], schema=PAIR_SCHEMA)


def everything(counts: PairCounts) -> Counter[Any]:
    found = [row for _, block in counts.blocks() for row in rows(block)]
    assert len(found) == len(dict(found)) == len(counts)
    return Counter(dict(found))


class TestCounting:
    def test_equal_to_counter(self) -> None:
        words = random_symbols(1)
        counts = filled(words[:200], [], words[200:])
        assert everything(counts) == pairs_of(words)
        other = filled(random_symbols(2))
        counts.add(other)
        for _, block in other.blocks():
            counts.add_block(block.slice(3))
            counts.add_block(block.slice(0, 3))
        expected = pairs_of(words) + pairs_of(random_symbols(2)) + pairs_of(random_symbols(2))
        assert everything(counts) == expected

    def test_widths(self) -> None:
        counts = PairCounts()
        counts.add_words(columns_of([([0, 1, 0, 0], 5)]), np.array([1, 2], np.uint32), 3)
        assert everything(counts) == {(0, 0): 5}
        counts.add_words(columns_of([([0, 1, 0, 0], 5)]), None, None)
        assert everything(counts) == {(0, 0): 10, (0, 1): 5, (1, 0): 5}

    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
    def test_texts(self, kind: pa.DataType) -> None:
        texts = ["before", "", "aaa", " né", "语😀\U0010ffff\0", "x", "after"]
        counted = pa.array([9, 1, 2, 3, 4, 5, 9], pa.int64())
        for symbols, cut in (
            ("characters", list),
            ("bytes", lambda text: list(to_chars(text.encode()))),
        ):
            counts = PairCounts()
            counts.add_texts(pa.array(texts, kind).slice(1, 5), counted.slice(1, 5), symbols)
            counts.add_texts(pa.array([], kind), pa.array([], pa.int64()), symbols)
            expected = pairs_of(
                (cut(text), count) for text, count in zip(texts[1:6], range(1, 6), strict=True)
            )
            found = {(chr(a), chr(b)): count for (a, b), count in everything(counts).items()}
            assert found == expected

    def test_clear(self) -> None:
        counts = PairCounts()
        empty = counts.memory_bytes
        counts.add_words(columns_of(random_symbols(1)))
        assert counts.memory_bytes >= 16 * len(counts) > empty
        counts.clear()
        assert (len(counts), counts.memory_bytes, list(counts.blocks())) == (0, empty, [])


class TestTaking:
    def test_frequent(self) -> None:
        words = random_symbols(3, symbols=9)
        counts, pairs = filled(words), pairs_of(words)
        block, floor = counts.frequent(20_000, 10**6)
        assert block.schema == PAIR_SCHEMA
        assert floor == 20_000
        assert rows(block) == sorted(row for row in pairs.items() if row[1] >= 20_000)
        block, floor = counts.frequent(1, 5)
        assert rows(block) == sorted(pairs.most_common(5))
        assert floor == pairs.most_common(6)[5][1] + 1

    def test_best(self) -> None:
        counts = PairCounts()
        counts.add_block(block_of((0, 1, 5), (1, 0, 5), (1, 1, 7), (0, 0, 1)))
        assert [pair for pair, _ in rows(counts.best(3))] == [(1, 1), (0, 1), (1, 0)]
        ranked = counts.best(3, np.array([1, 0], np.uint32))
        assert [pair for pair, _ in rows(ranked)] == [(1, 1), (1, 0), (0, 1)]
        assert ranked.schema == PAIR_SCHEMA


class TestBlocks:
    @pytest.mark.parametrize("shards", [1, 3, PARTITIONS])
    def test_shards(self, shards: int) -> None:
        """A pair has one shard, whatever else is in the table, and blocks are sorted."""
        words = random_symbols(4)
        whole = list(filled(words).blocks(shards))
        shard_of = {pair: shard for shard, block in whole for pair, _ in rows(block)}
        assert set(shard_of.values()) == set(range(shards))
        for part in (words[:50], words[50:]):
            for shard, block in filled(part).blocks(shards):
                assert rows(block) == sorted(rows(block))
                assert {shard_of[pair] for pair, _ in rows(block)} == {shard}

    def test_equal_tables_give_equal_blocks(self) -> None:
        words = random_symbols(5)
        backwards = filled(words[::-1])
        pieces = filled()
        for number in range(4):
            pieces.add(filled(words[number::4]))
        expected = [(shard, encode_block(block)) for shard, block in filled(words).blocks()]
        for other in (backwards, pieces):
            assert [(shard, encode_block(block)) for shard, block in other.blocks()] == expected
            assert other.to_bytes() == filled(words).to_bytes()

    def test_at_most_a_megabyte(self) -> None:
        counts = PairCounts()
        ids = np.arange(200_000, dtype=np.uint32)
        counts.add_block(
            pa.record_batch([ids, ids[::-1].copy(), ids.astype(np.int64) + 1], schema=PAIR_SCHEMA)
        )
        sizes = [len(encode_block(block)) for _, block in counts.blocks(1)]
        assert len(sizes) == 4
        assert BLOCK_BYTES * 0.99 < max(sizes) <= BLOCK_BYTES
        small = [block for _, block in counts.blocks(1, max_bytes=1)]
        assert {block.num_rows for block in small[:100]} == {1}
        assert len(everything(counts)) == 200_000

    @pytest.mark.parametrize("words", [random_symbols(6), []])
    def test_there_and_back(self, words: Words) -> None:
        counts = filled(words)
        for again in (PairCounts.from_bytes(counts.to_bytes()), pickle.loads(pickle.dumps(counts))):
            assert everything(again) == pairs_of(words)
            again.add(counts)  # a table like any other
            assert len(again) == len(counts)
        assert counts.to_batch().schema == PAIR_SCHEMA


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("block", "message"),
        [
            (block_of((1, 2, 0)), "count must be at least 1"),
            (block_of((1, 2, MOST), (1, 2, 1)), "beyond 64 bits"),
            (pa.record_batch([[1], [2], [None]], schema=PAIR_SCHEMA), "1 nulls"),
        ],
    )
    def test_blocks(self, block: pa.RecordBatch, message: str) -> None:
        with pytest.raises(DataError, match=message):
            PairCounts().add_block(block)

    def test_words(self) -> None:
        for data, count, message in (
            (b"a\x80", 1, "word 0 is not a packed word"),
            (b"ab", 0, "the count of word 0 must be at least 1"),
        ):
            columns = (data, np.array([0, 2], np.int64), np.array([count], np.int64))
            with pytest.raises(DataError, match=message):
                PairCounts().add_words(columns)
        with pytest.raises(DataError, match="offsets must ascend"):
            PairCounts().add_words((b"ab", np.array([0, 9], np.int64), np.array([1], np.int64)))
        with pytest.raises(DataError, match="must be set together"):
            PairCounts().add_words(columns_of([([1, 2], 1)]), None, 4)
        with pytest.raises(DataError, match="must be at least 1, got 0"):
            PairCounts().add_texts(pa.array(["ab"]), pa.array([0]), "bytes")

    def test_sums(self) -> None:
        counts, more = PairCounts(), PairCounts()
        counts.add_block(block_of((1, 2, MOST)))
        more.add_block(block_of((1, 2, 1)))
        with pytest.raises(DataError, match="beyond 64 bits"):
            counts.add(more)

    def test_bytes_that_are_no_block(self) -> None:
        data = encode_block(block_of(*((i, i, 1) for i in range(100))))
        assert decode_pairs(data).num_rows == 100
        made = random.Random(1)
        for broken in (
            b"", b"hostile", data[:200], data[: len(data) // 2],
            *(bytes(made.randrange(256) for _ in range(300)) for _ in range(20)),
        ):  # fmt: skip
            with pytest.raises(DataError, match="cannot be read"):
                decode_pairs(broken)
        # Whatever its bytes are, a block is one or a DataError.
        for _ in range(300):
            flipped = bytearray(data)
            flipped[made.randrange(len(data))] ^= 1 << made.randrange(8)
            with contextlib.suppress(DataError):
                PairCounts().add_block(decode_pairs(bytes(flipped)))

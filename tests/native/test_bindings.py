"""The native module as Python sees it: what it takes, what it refuses, and that threads may share.

Nothing that a caller passes may reach a kernel unchecked: offsets, lengths and ids may come from
a file that somebody else wrote.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bpe_beam import _native

pytestmark = pytest.mark.quick

NO_ID = 0xFFFFFFFF
BYTE_IDS = np.arange(256, dtype=np.uint32)
NO_MERGES = np.zeros((0, 3), np.uint32)
AB = np.array([[97, 98, 256]], np.uint32)


def offsets(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


# Each takes offsets into six bytes and should refuse what does not ascend within them.
TAKERS: dict[str, Callable[[np.ndarray], object]] = {
    "add_texts": lambda bounds: _native.WordTable().add_texts(b"abcdef", bounds),
    "add_words": lambda bounds: _native.WordTable().add_words(
        b"abcdef", bounds, np.ones(max(0, len(bounds) - 1), np.int64)
    ),
    "encode_batch": lambda bounds: _native.BpeEncoder(AB, BYTE_IDS).encode_batch(b"abcdef", bounds),
    "learner": lambda bounds: _native.BpeLearner(
        np.zeros(6, np.uint32), bounds, np.ones(max(0, len(bounds) - 1), np.int64),
        [b"a"], 9, 0, "lowest_id",
    ),
}  # fmt: skip


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize(
    "bounds", [(), (0, 7), (3, 2), (0, 3, 2), (-1, 3), (0, 2**62), (-(2**63), 0), (7, 7)]
)
def test_offsets_that_do_not_ascend_within_the_data(taker: str, bounds: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        TAKERS[taker](offsets(*bounds))


@pytest.mark.parametrize("taker", TAKERS)
def test_offsets_that_do(taker: str) -> None:
    for bounds in ((0, 6), (0, 1, 6), (2, 4), (6,)):
        TAKERS[taker](offsets(*bounds))


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("kind", [np.float64, np.uint64, object])
def test_offsets_of_another_type(taker: str, kind: type) -> None:
    with pytest.raises(TypeError):
        TAKERS[taker](np.array([0, 6], kind))


@pytest.mark.parametrize("data", [b"it's", bytearray(b"it's"), memoryview(b"it's")])
def test_any_buffer(data: Any) -> None:
    table = _native.WordTable()
    assert table.add_texts(data, offsets(0, 4)) == 2
    assert _native.BpeEncoder(AB, BYTE_IDS).encode(data).tolist() == [105, 116, 39, 115]


def test_buffers_with_gaps() -> None:
    for data in (memoryview(b"abcdef")[::2], memoryview(b"abcdef")[::-1], np.zeros((2, 3), "u1")):
        with pytest.raises(ValueError, match="one contiguous buffer"):
            _native.WordTable().add_texts(data, offsets(0, 3))


def test_partition_of_is_fixed_for_ever() -> None:
    """The same as tests/native/test_hash.cpp: counts of other years are added to these."""
    words = [b"", b"a", b" the", b"Hello!!", b"fifteen letters", b"sixteen letters.", b"t" * 33]
    assert [_native.partition_of(word, 32) for word in words] == [28, 7, 26, 4, 10, 5, 12]
    assert [_native.partition_of(word, 1000) for word in words] == [
        876,
        229,
        818,
        131,
        342,
        179,
        380,
    ]


class TestWordTable:
    def test_split(self) -> None:
        table = _native.WordTable(True, [(b"<s>", 0)])
        table.add_texts("b<s>é b".encode(), offsets(0, 8), np.array([5], np.uint64))
        ((bounds, data, counts, documents, words),) = table.split(1)
        assert bytes(data) == " bbé".encode()
        assert bounds.tolist() == [0, 2, 3, 5]
        assert counts.tolist() == [1, 1, 1]
        assert documents.tolist() == [5, 5, 5]
        assert words.tolist() == [2, 0, 1]
        assert [array.dtype for array in (bounds, counts, documents, words)] == [
            np.int64, np.int64, np.uint64, np.uint64,
        ]  # fmt: skip

    def test_split_outlives_the_table(self) -> None:
        table = _native.WordTable()
        table.add_texts(b"word " * 3, offsets(0, 15))
        parts = table.split(1)
        table.clear()
        del table
        assert bytes(parts[0][1]) == b"  wordword"
        assert parts[0][2].tolist() == [1, 2, 1]

    def test_what_it_refuses(self) -> None:
        table = _native.WordTable()
        with pytest.raises(ValueError, match="counts has 2 items, not 1"):
            table.add_words(b"ab", offsets(0, 2), np.ones(2, np.int64))
        with pytest.raises(ValueError, match="partitions is below 1"):
            table.split(0)
        with pytest.raises(TypeError):
            table.split(-1)
        with pytest.raises(ValueError, match="added to itself"):
            table.add_table(table)
        with pytest.raises(ValueError, match="without places"):
            _native.WordTable(True).add_table(table)
        with pytest.raises(ValueError, match="a special token is empty"):
            _native.WordTable(False, [(b"", 0)])
        placed = _native.WordTable(True)
        with pytest.raises(ValueError, match="none are given"):
            placed.add_words(b"ab", offsets(0, 2), np.ones(1, np.int64))
        with pytest.raises(ValueError, match="places has 1 items, not 2"):
            placed.add_texts(b"ab", offsets(0, 1, 2), np.ones(1, np.uint64))

    @pytest.mark.parametrize(("add", "times"), [("add_texts", 20), ("add_table", 3000)])
    def test_threads_that_share_one(self, add: str, times: int) -> None:
        """They wait for each other: nothing is lost."""
        text = " ".join("w" * (i % 40) + "abcdef"[i % 6] * (i // 240) for i in range(5000)).encode()
        other = _native.WordTable()
        words = other.add_texts(text, offsets(0, len(text)))
        table = _native.WordTable()

        def work() -> None:
            for _ in range(times):
                if add == "add_texts":
                    table.add_texts(text, offsets(0, len(text)))
                else:
                    table.add_table(other)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(part[2].sum() for part in table.split(5)) == 4 * times * words
        assert len(table) == len(other) > 800


class TestBpeLearner:
    def test_what_it_gives(self) -> None:
        learner = _native.BpeLearner(
            np.array([0, 1, 0, 1], np.uint32), offsets(0, 2, 4), offsets(2**40, 3),
            [b"a", b"b"], 9, 0, "first_seen",
        )  # fmt: skip
        merges, counts = learner.learn(5)
        assert merges.dtype == np.uint32
        assert merges.tolist() == [[0, 1, 2]]
        assert counts.tolist() == [2**40 + 3]
        assert learner.tokens() == [b"a", b"b", b"ab"]
        merges, counts = learner.learn(5)
        assert merges.shape == (0, 3)
        assert counts.tolist() == []

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"tie_break": "best"}, "lowest_id, first_seen or greatest_bytes, not best"),
            ({"counts": offsets(1, 2)}, "one longer than counts"),
            ({"counts": offsets(0)}, "count is below 1"),
            ({"tokens": [b"a"]}, "a symbol has no token"),
            ({"tokens": [b"a", b""]}, "a symbol has no token"),
            ({"tokens": [b"a", b"a"]}, "two ids have the same token"),
        ],
    )
    def test_what_it_refuses(self, change: dict[str, Any], message: str) -> None:
        settings: dict[str, Any] = {
            "symbols": np.array([0, 1], np.uint32), "offsets": offsets(0, 2),
            "counts": offsets(1), "tokens": [b"a", b"b"], "vocab_size": 9, "min_frequency": 0,
            "tie_break": "lowest_id",
        }  # fmt: skip
        _native.BpeLearner(**settings)
        with pytest.raises(ValueError, match=message):
            _native.BpeLearner(**{**settings, **change})

    def test_counts_beyond_64_bits(self) -> None:
        with pytest.raises(OverflowError, match="beyond 64 bits"):
            _native.BpeLearner(
                np.array([0, 0], np.uint32), offsets(0, 2), offsets(2**62), [b"a"], 9, 0,
                "lowest_id",
            )  # fmt: skip


class TestBpeEncoder:
    def test_batch_equals_one_by_one(self) -> None:
        encoder = _native.BpeEncoder(AB, BYTE_IDS, [(b"<s>", 500)])
        texts = [b"ab ab", b"", b"<s>ab", b"x" * 100, b"abab<s>"]
        bounds = np.cumsum([0, *map(len, texts)])
        for allowed in ([], [500]):
            ids, id_bounds = encoder.encode_batch(b"".join(texts), bounds, allowed)
            assert ids.dtype == np.uint32
            assert id_bounds.dtype == np.int64
            assert [ids[begin:end].tolist() for begin, end in itertools.pairwise(id_bounds)] == [
                encoder.encode(text, allowed).tolist() for text in texts
            ]

    def test_allowed_in_any_order(self) -> None:
        specials = [(b"<a>", 502), (b"<b>", 500), (b"<c>", 501)]
        encoder = _native.BpeEncoder(NO_MERGES, BYTE_IDS, specials)
        for allowed in ([502, 500, 501], [501, 502, 500, 500]):
            assert encoder.encode(b"<a><b><c>", allowed).tolist() == [502, 500, 501]

    def test_missing_byte(self) -> None:
        byte_ids = BYTE_IDS.copy()
        byte_ids[ord("z")] = NO_ID
        encoder = _native.BpeEncoder(AB, byte_ids)
        with pytest.raises(_native.MissingByteError) as caught:
            encoder.encode(b"ab abz")
        assert caught.value.args == (0, 5)
        with pytest.raises(_native.MissingByteError) as caught:
            encoder.encode_batch(b"abababz", offsets(0, 2, 4, 7))
        assert caught.value.args == (2, 2)
        assert isinstance(caught.value, ValueError)
        assert encoder.encode(b"ab").tolist() == [256]

    @pytest.mark.parametrize(
        ("merges", "byte_ids", "message"),
        [
            (np.zeros((2, 2), np.uint32), BYTE_IDS, "rows of"),
            (np.zeros(3, np.uint32), BYTE_IDS, "rows of"),
            (NO_MERGES, BYTE_IDS[:255], "byte_ids has 255 items, not 256"),
        ],
    )
    def test_what_it_refuses(self, merges: np.ndarray, byte_ids: np.ndarray, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            _native.BpeEncoder(merges, byte_ids)

    def test_merges_with_gaps_between_rows(self) -> None:
        spread = np.zeros((2, 6), np.uint32)
        spread[:, ::2] = [[97, 98, 256], [256, 99, 257]]
        assert _native.BpeEncoder(spread[:, ::2], BYTE_IDS).encode(b"abc").tolist() == [257]

    def test_threads_that_share_one(self) -> None:
        encoder = _native.BpeEncoder(AB, BYTE_IDS, cache_bytes=100)
        texts = [
            bytes(made) for made in np.random.default_rng(1).integers(97, 101, (50, 300), "u1")
        ]
        expected = [encoder.encode(text).tolist() for text in texts]
        wrong: list[bytes] = []

        def work() -> None:
            for _ in range(10):
                for text, ids in zip(texts, expected, strict=True):
                    if encoder.encode(text).tolist() != ids:
                        wrong.append(text)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

"""The table of words and counts against `collections.Counter` over the reference's words."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from word_counts import block_of, counts_in, random_texts, words_of

from bpe_beam.counts.word_table import (
    PLACED_SCHEMA,
    WORD_SCHEMA,
    WordCounter,
    WordRules,
    decode_block,
    encode_block,
)
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.deadline import VARIABLE

pytestmark = pytest.mark.quick

SPECIALS = ("<s>", "<s>>", "é ")
MOST = 2**63 - 1


def places_in(counts: WordCounter) -> dict[str, tuple[int, int]]:
    """Where each word occurred first."""
    return {
        row["word"]: (row["first_document"], row["first_word"])
        for _, block in counts.blocks()
        for row in block.to_pylist()
    }


def encoded(counts: WordCounter) -> list[tuple[int, bytes]]:
    return [(partition, encode_block(block)) for partition, block in counts.blocks()]


class TestTexts:
    @pytest.mark.parametrize("specials", [(), SPECIALS])
    def test_equal_to_counter(self, specials: tuple[str, ...]) -> None:
        texts = random_texts(500, 1)
        expected = Counter(word for text in texts for word in words_of(text, specials))
        counts = WordCounter(WordRules(special_tokens=specials))
        assert counts.add_texts(pa.array(texts)) == expected.total()
        assert len(counts) == len(expected)
        assert counts_in(counts.blocks()) == expected

    def test_any_pattern_of_batches(self) -> None:
        """Slices of arrays, of either type, and empty ones."""
        texts = random_texts(200, 2)
        counts = WordCounter()
        total = 0
        for kind, start in itertools.product((pa.string(), pa.large_string()), (0, 100)):
            array = pa.array(["before", *texts, "after"], kind)
            total += counts.add_texts(array.slice(1 + start, 100))
            total += counts.add_texts(array.slice(50, 0))
            total += counts.add_texts(pa.array([], kind))
        expected = Counter(word for text in texts * 2 for word in words_of(text))
        assert total == expected.total()
        assert counts_in(counts.blocks()) == expected

    def test_texts_do_not_run_together(self) -> None:
        counts = WordCounter()
        counts.add_texts(pa.array(["it", "'s", "", "it"]))
        assert counts_in(counts.blocks()) == {"it": 2, "'s": 1}

    def test_special_tokens_are_cut(self) -> None:
        counts = WordCounter(WordRules(special_tokens=("<|end|>",)))
        assert counts.add_texts(pa.array(["a  <|end|>'s<|end", "<|end|><|end|>"])) == 5
        assert counts_in(counts.blocks()) == {"a": 1, "  ": 1, "'s": 1, "<|": 1, "end": 1}

    def test_what_it_does_not_take(self) -> None:
        counts = WordCounter()
        with pytest.raises(ValueError, match="texts must not be null, got 1 nulls"):
            counts.add_texts(pa.array(["a", None]))
        with pytest.raises(ValueError, match="string array, got binary"):
            counts.add_texts(pa.array([b"a"]))
        assert len(counts) == 0
        with pytest.raises(UsageError, match="normalizer must be one of"):
            WordCounter(WordRules(normalizer="nope"))
        with pytest.raises(UsageError, match="pretokenizer must be one of"):
            WordCounter(WordRules(pretokenizer="nope"))

    @pytest.mark.parametrize("with_places", [False, True])
    def test_a_record_beyond_the_limit_is_handed_on_in_parts(self, with_places: bool) -> None:
        """The table never holds more, however many words one text has."""
        limit = 200_000
        texts = pa.array([" ".join(f"w{i % 30_000}" for i in range(40_000)), "w7 and more"])
        places = pa.array([5, 9], pa.uint64())
        settings = {"pretokenizer": "whitespace_split", "with_places": with_places}
        whole, counts, gathered = (WordCounter(WordRules(**settings)) for _ in range(3))
        held: list[int] = []

        def on_full(blocks: Any) -> None:
            held.append(sum(gathered.add_block(block) or block.num_rows for _, block in blocks))  # type: ignore[func-returns-value]

        words = counts.add_texts(texts, places, max_bytes=limit, on_full=on_full)
        assert words == whole.add_texts(texts, places) == 40_003
        assert len(held) > 3
        # 24 bytes a slot, with places 40; a slot each at most 5/8 of the time.
        assert max(held) * (40 if with_places else 24) * 8 / 5 <= limit
        assert counts.memory_bytes <= limit < whole.memory_bytes
        gathered.add(counts)
        assert list(gathered.blocks()) == list(whole.blocks())

    def test_a_failure_of_what_takes_the_words_is_raised(self) -> None:
        def on_full(_: Any) -> None:
            raise DataError("the disk is full")

        counts = WordCounter(WordRules(pretokenizer="whitespace_split"))
        texts = pa.array([" ".join(map(str, range(20_000)))])
        with pytest.raises(DataError, match="the disk is full"):
            counts.add_texts(texts, max_bytes=100_000, on_full=on_full)
        counts.clear()
        assert counts.add_texts(pa.array(["one two"])) == 2

    def test_the_text_has_its_time_however_long_its_words_take_to_be_stored(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(VARIABLE, "1")

        def on_full(blocks: Any) -> None:
            begin = time.thread_time()
            while not handed and time.thread_time() - begin < 1.2:  # much to do, once
                pass
            handed.append(sum(block.num_rows for _, block in blocks))

        handed: list[int] = []
        # A pattern that Python searches with, for each piece between special tokens.
        counts = WordCounter(WordRules("none", r"regex:\w+(?=x?)|\W", ("<|e|>",)))
        text = "<|e|>".join(f"w{i} ab" for i in range(60))
        assert counts.add_texts(pa.array([text]), max_bytes=0, on_full=on_full) == 180
        assert handed

    def test_clear(self) -> None:
        counts = WordCounter()
        empty = counts.memory_bytes
        for i in range(200):
            counts.add_texts(pa.array([" ".join("w" * n + "ab" * i for n in range(30))]))
        assert counts.memory_bytes > 10 * empty
        counts.clear()
        assert len(counts) == 0
        assert counts.memory_bytes == empty
        assert list(counts.blocks()) == []
        counts.add_texts(pa.array(["a"]))
        assert counts_in(counts.blocks()) == {"a": 1}


class TestPlaces:
    def test_the_first_occurrence(self) -> None:
        texts = random_texts(300, 3)
        places = [i << 44 | 7 * i for i in range(300)]
        expected: dict[str, tuple[int, int]] = {}
        for place, text in zip(places, texts, strict=True):
            for number, word in enumerate(words_of(text, SPECIALS)):
                expected.setdefault(word, (place, number))
        order = list(range(300))
        for seed in (None, 1, 2):
            if seed is not None:
                random.Random(seed).shuffle(order)
            counts = WordCounter(WordRules(with_places=True, special_tokens=SPECIALS))
            for some in (order[:100], order[100:]):
                counts.add_texts(
                    pa.array([texts[i] for i in some]),
                    pa.array([places[i] for i in some], pa.uint64()),
                )
            assert places_in(counts) == expected

    def test_places_of_64_bits(self) -> None:
        counts = WordCounter(WordRules(with_places=True))
        counts.add_texts(pa.array(["a b"]), pa.array([2**64 - 1], pa.uint64()))
        assert places_in(counts) == {"a": (2**64 - 1, 0), " b": (2**64 - 1, 1)}
        counts.add_texts(pa.array(["b a"]), pa.array([2**53 + 1], pa.uint64()))
        assert places_in(counts)["a"] == (2**64 - 1, 0)
        assert places_in(counts)["b"] == (2**53 + 1, 0)

    def test_places_that_are_missing_or_too_few(self) -> None:
        counts = WordCounter(WordRules(with_places=True))
        with pytest.raises(ValueError, match="documents must be set"):
            counts.add_texts(pa.array(["a"]))
        with pytest.raises(ValueError, match="positions must have 2 items, got 1"):
            counts.add_texts(pa.array(["a", "b"]), pa.array([1], pa.uint64()))
        with pytest.raises(ValueError, match="must have positions"):
            counts.add(WordCounter())

    def test_columns(self) -> None:
        without, with_places = WordCounter(), WordCounter(WordRules(with_places=True))
        without.add_texts(pa.array(["a"]), pa.array([1], pa.uint64()))
        with_places.add_texts(pa.array(["a"]), pa.array([1], pa.uint64()))
        assert next(without.blocks())[1].schema == WORD_SCHEMA
        assert next(with_places.blocks())[1].schema == PLACED_SCHEMA


def directly(counts: WordCounter, texts: list[str], places: list[int]) -> None:
    counts.add_texts(pa.array(texts, pa.string()), pa.array(places, pa.uint64()))


def over_blocks(counts: WordCounter, texts: list[str], places: list[int]) -> None:
    """As a shuffle brings it: counted elsewhere, in blocks, in any order."""
    other = WordCounter(WordRules(with_places=counts.with_places, special_tokens=SPECIALS))
    directly(other, texts, places)
    blocks = [encode_block(block) for _, block in other.blocks(7, max_bytes=1500)]
    random.Random(len(texts)).shuffle(blocks)
    for block in blocks:
        counts.add_block(decode_block(block, counts.with_places))


def over_a_table(counts: WordCounter, texts: list[str], places: list[int]) -> None:
    other = WordCounter(WordRules(with_places=counts.with_places, special_tokens=SPECIALS))
    directly(other, texts, places)
    counts.add(other)
    other.clear()


@pytest.mark.parametrize("with_places", [False, True])
@pytest.mark.parametrize("pieces", [1, 2, 7, 40])
@pytest.mark.parametrize("add", [directly, over_blocks, over_a_table])
def test_however_it_is_split_and_put_together(
    add: Callable[[WordCounter, list[str], list[int]], None], pieces: int, with_places: bool
) -> None:
    """The same blocks, byte for byte, whatever came in which order."""
    texts = random_texts(200, 6)
    whole = WordCounter(WordRules(with_places=with_places, special_tokens=SPECIALS))
    directly(whole, texts, list(range(200)))
    order = list(range(200))
    random.Random(pieces).shuffle(order)
    together = WordCounter(WordRules(with_places=with_places, special_tokens=SPECIALS))
    for start in range(pieces):
        some = order[start::pieces]
        add(together, [texts[i] for i in some], some)
    assert encoded(together) == encoded(whole)
    assert counts_in(together.blocks()) == Counter(
        word for text in texts for word in words_of(text, SPECIALS)
    )


class TestCounts:
    @pytest.mark.parametrize("large", [2**31, 2**32, 2**53, 2**62])
    def test_exact(self, large: int) -> None:
        counts = WordCounter()
        long_word = "w" * 50
        counts.add_block(block_of(("word", large - 1), (long_word, large)))
        counts.add_block(block_of(("word", 1), (long_word, 1)))
        counts.add_texts(pa.array(["word"]))
        assert counts_in(counts.blocks()) == {"word": large + 1, long_word: large + 1}

    @pytest.mark.parametrize("word", ["word", "w" * 50])
    def test_beyond_64_bits(self, word: str) -> None:
        """Refused, and what was counted stays."""
        counts, other = WordCounter(), WordCounter()
        counts.add_block(block_of((word, MOST)))
        other.add_block(block_of((word, 1)))
        with pytest.raises(DataError, match="beyond 64 bits"):
            counts.add_block(block_of((word, 1)))
        with pytest.raises(OverflowError, match="beyond 64 bits"):
            counts.add(other)
        assert counts_in(counts.blocks()) == {word: MOST}

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            (("a", 0), "at least 1"),
            (("a", -5), "at least 1"),
            (("", 1), "a word must not be empty"),
        ],
    )
    def test_rows_that_cannot_be(self, row: tuple[str, int], message: str) -> None:
        with pytest.raises(DataError, match=message):
            WordCounter().add_block(block_of(row))

    def test_slices_of_blocks(self) -> None:
        counts = WordCounter()
        counts.add_block(block_of(("a", 1), ("b", 2), ("c", 3)).slice(1, 1))
        assert counts_in(counts.blocks()) == {"b": 2}

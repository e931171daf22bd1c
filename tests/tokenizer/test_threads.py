"""Threads that share a tokenizer, a table, or a pattern that needs Python."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bpe_beam import Tokenizer
from bpe_beam.counts.word_table import WordCounter, WordRules
from bpe_beam.errors import DataError
from bpe_beam.tokenizer.components.models import WordLevel
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.pretokenizers import Split
from bpe_beam.tokenizer.deadline import VARIABLE
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.workers.unused_memory import release_unused_memory

pytestmark = pytest.mark.quick

PATTERN = r"\w+|[^\w\s]|\s"
TEXTS = [f"to be, or not {number} to be!" * 5 for number in range(40)]


def test_a_pattern_of_python_in_many_threads() -> None:
    """The native code waits for Python inside of its own locks; nobody may wait for both."""
    vocab = {word: i for i, word in enumerate(["<unk>", "to", "be", "or", "not", " ", ",", "!"])}
    split = Split(Pattern(regex=PATTERN), "Isolated", invert=False)
    tokenizer = Tokenizer(TokenizerSpec(WordLevel(vocab), pre_tokenizer=split))
    counts = WordCounter(WordRules(pretokenizer=f"regex:{PATTERN}"))
    expected = [tokenizer.encode(text) for text in TEXTS]

    def work(_: int) -> bool:
        counts.add_texts(pa.array(TEXTS))
        len(counts)
        return tokenizer.encode_batch(TEXTS) == expected

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))
    totals = {
        word: count
        for _, block in counts.blocks(1)
        for word, count in zip(*(column.to_pylist() for column in block.columns), strict=True)
    }
    assert totals["be"] == 40 * 40 * 5 * 2
    counts.clear()
    assert len(counts) == 0


def test_a_pattern_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0.2")
    split = Split(Pattern(regex=r"(?:a|aa|aaa)+$|b"), "Isolated", invert=False)
    tokenizer = Tokenizer(TokenizerSpec(WordLevel({"<unk>": 0}), pre_tokenizer=split))
    assert tokenizer.encode("aab") == [0, 0]
    with pytest.raises(DataError, match=r"takes over 0 seconds of CPU time for 2,001"):
        tokenizer.encode("a" * 2_000 + "c")


def test_an_error_in_python_comes_through() -> None:
    class Broken(Pattern):  # type: ignore[misc]
        def byte_spans(self, data: bytes) -> list[tuple[int, int]]:
            raise ZeroDivisionError(len(data))

    split = Split(Broken(regex="a|b"), "Isolated", invert=False)
    tokenizer = Tokenizer(TokenizerSpec(WordLevel({"<unk>": 0}), pre_tokenizer=split))
    with pytest.raises(ZeroDivisionError, match="5"):
        tokenizer.encode_batch(["abcde"])


def resident() -> int:
    """Return the bytes that this process uses in memory."""
    release_unused_memory()
    return 1024 * int(re.findall(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[0])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the memory")
def test_the_cache_of_words_is_freed(plain_tokenizer: Tokenizer) -> None:
    letters = np.random.default_rng(1).integers(ord("a"), ord("z") + 1, (400_000, 12), np.uint8)
    letters[:, 0] = ord(" ")
    text = letters.tobytes().decode()
    ids = plain_tokenizer.encode_batch([text])
    with_cache = resident()
    plain_tokenizer.clear_cache()
    assert with_cache - resident() > 20_000_000
    assert plain_tokenizer.encode_batch([text]) == ids


def test_the_cache_of_words_is_freed_while_others_encode(plain_tokenizer: Tokenizer) -> None:
    expected = plain_tokenizer.encode_batch(TEXTS)

    def work(number: int) -> bool:
        if number % 3 == 0:
            plain_tokenizer.clear_cache()
        return plain_tokenizer.encode_batch(TEXTS) == expected

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(300)))

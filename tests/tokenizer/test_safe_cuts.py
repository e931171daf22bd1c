"""Places where a text may be cut, for every scanner."""

from __future__ import annotations

import itertools
import random

import pytest

from bpe_beam import _native
from bpe_beam.tokenizer.encoding.text_chunks import safe_cuts

pytestmark = pytest.mark.quick

HEADS = ("gpt2", "cl100k", "qwen2", "o200k")  # others differ from one of them in a switch
SCANNERS = [name for name in _native.SCANNERS if name != "none"]


def words(text: str, scanner: str) -> list[bytes]:
    data = text.encode()
    return [data[a:b] for a, b in _native.scan_words(data, scanner).tolist()]


def cuts(scanner: str, text: str) -> list[int]:
    """The safe cuts, in characters, the last first."""
    data = text.encode()
    return [len(data[:cut].decode()) for cut in safe_cuts(scanner, data)]


@pytest.mark.parametrize(
    ("scanner", "text", "expected"),
    [
        ("gpt2", "ab cd e", [5, 2]),
        ("gpt2", "'rx", [1]),
        ("gpt2", "a  b", [1]),
        ("cl100k", "a\n\nb c", [4, 1]),
        ("cl100k", "it's a", [4, 2]),
        ("qwen2", "12 34", [2, 1]),
        ("o200k", "it's ab", [4]),
        ("cl100k_right", "a 12345 b", [7, 1]),  # 12 and 345: not within a number
        ("deepseek_v3", "a  12語 b!c ", [8, 6, 5, 1]),
        ("digits_gpt2", "a 12 b c", [6, 4, 3, 1]),
        ("gemma", "ab  c\n\nde f", [9, 5, 2]),
        ("unicode_scripts", "ab 漢かb", [5, 3]),
        ("o200k", "it'l", []),  # could become it'll
        ("o200k", "語AAA b", []),  # a b right after the last A would join 語
        ("o200k", "語AAA b c", [4]),  # not before A, which may belong to 語's word
        ("o200k", "éé, 语语 1", [3, 2]),
        ("bert", "ab, cd", [3, 2]),
        ("whitespace", "ab, cd", [3, 2]),
        ("whitespace_split", "ab, cd ", [6, 3]),
        ("digits", "ab12c", [4, 2]),
        ("digits_individual", "ab12c", [4, 3, 2]),
        ("punctuation", "a!!b", [3, 2, 1]),
        ("none", "a b c d", []),
    ],
)
def test_where(scanner: str, text: str, expected: list[int]) -> None:
    assert cuts(scanner, text) == expected


@pytest.mark.parametrize("scanner", _native.SCANNERS)
def test_where_there_is_none(scanner: str) -> None:
    for text in ("", "a", " ", "a" * 50, " " * 50):
        assert cuts(scanner, text) == []


def test_a_scanner_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="scanner must be one of SCANNERS, got gpt3"):
        list(safe_cuts("gpt3", b"a b"))


@pytest.mark.parametrize("scanner", SCANNERS)
def test_the_same_words_whatever_follows(scanner: str) -> None:
    """Random texts of characters that exercise the patterns, and every way to go on."""
    rng = random.Random(0)
    letters = "12あ\x01" + "''' \n\r\tsdmtlrveaSLA é1½./!语ʰ\u0301\u017f\u3000\x1c\u200d"
    cut_texts = 0
    for _ in range(6000 if scanner in HEADS else 2500):
        text = "".join(rng.choices(letters, k=rng.randint(1, 14)))
        known = text[: rng.randint(0, len(text))]
        whole = words(text, scanner)
        for cut in cuts(scanner, known):
            assert words(text[:cut], scanner) + words(text[cut:], scanner) == whole, (text, cut)
            cut_texts += 1
    assert cut_texts > 500


@pytest.mark.sampled(4)
@pytest.mark.parametrize("alphabet", ["'lLa ", "Aa\u0301語 ", " \n!a1"])
@pytest.mark.parametrize(
    ("scanner", "longest"),
    [
        *((scanner, 5) for scanner in SCANNERS),
        *(pytest.param(scanner, 6, marks=pytest.mark.slow) for scanner in HEADS),
    ],
)
def test_the_same_words_in_all_short_texts(scanner: str, longest: int, alphabet: str) -> None:
    for characters in itertools.product(alphabet, repeat=longest):
        text = "".join(characters)
        whole = None
        for length in range(longest - 2, longest + 1):
            for cut in cuts(scanner, text[:length]):
                whole = whole or words(text, scanner)
                assert words(text[:cut], scanner) + words(text[cut:], scanner) == whole, (
                    text,
                    length,
                    cut,
                )

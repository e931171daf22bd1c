"""The scanner of GPT-2's pattern against that pattern in the `regex` package.

The two must agree on every text. What could part them is a Unicode version: the scanner's table is
of the version that its header names, `regex` of its own. Where they differ, characters that were
not assigned in both are left out, and a warning says which.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from code_points import of_used_planes
from gpt2_scanner_checks import (
    PATTERN,
    REPRESENTATIVES,
    differs,
    left_out,
)

from bpe_beam import _native


def ends_by_regex(text: str) -> np.ndarray:
    """Where each word ends, in bytes; the words must cover the text."""
    spans = np.array([match.span() for match in PATTERN.finditer(text)], np.int64).reshape(-1, 2)
    assert np.array_equal(spans[1:, 0], spans[:-1, 1])
    assert len(spans) == 0 if not text else (spans[0, 0], spans[-1, 1]) == (0, len(text))
    code_points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    widths = 1 + (code_points >= 0x80) + (code_points >= 0x800) + (code_points >= 0x10000)
    return np.cumsum(widths)[spans[:, 1] - 1]


def check(text: str) -> None:
    """Fails at the first word that differs."""
    data = text.encode()
    found, expected = _native.scan_words(data, "gpt2")[:, 1], ends_by_regex(text)
    if np.array_equal(found, expected):
        return
    same = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), 0)
    begin = int(expected[same - 1]) if same else 0
    words = data[begin : found[same]].decode(), data[begin : expected[same]].decode()
    pytest.fail(f"at byte {begin} of {data[max(0, begin - 20) : begin + 50]!r}: {words!r}")


@pytest.fixture(scope="module")
def characters() -> list[str]:
    """Every code point that is a character and that both know."""
    skipped = left_out().union(range(0xD800, 0xE000))
    return [chr(c) for c in range(0x110000) if c not in skipped]


@pytest.mark.quick
def test_what_it_takes_and_gives() -> None:
    for text in (b"it's 9", bytearray(b"it's 9"), memoryview(b"it's 9")):
        ends = _native.scan_words(text, "gpt2")[:, 1]
        assert ends.dtype == np.int64
        assert ends.tolist() == [2, 4, 6]
    assert _native.scan_words(b"", "gpt2")[:, 1].tolist() == []
    with pytest.raises(TypeError):
        _native.scan_words("text", "gpt2")[:, 1]
    with pytest.raises(ValueError, match="contiguous"):
        _native.scan_words(memoryview(b"abcdef")[::2], "gpt2")[:, 1]


@pytest.mark.quick
@pytest.mark.parametrize("length", [1, 2, 3])
def test_all_short_strings_of_representatives(length: int) -> None:
    wrong = [
        text
        for text in map("".join, itertools.product(REPRESENTATIVES, repeat=length))
        if differs(text)
    ]
    assert wrong == []


@pytest.mark.quick
def test_all_strings_of_what_contractions_and_spaces_are_made_of() -> None:
    wrong = [text for text in map("".join, itertools.product("'sle \n", repeat=6)) if differs(text)]
    assert wrong == []


def in_texts_of(contexts: list[str], characters: list[str]) -> None:
    """Compares texts in which each character is in each context, 20,000 characters a text."""
    for start in range(0, len(characters), 20_000):
        some = characters[start : start + 20_000]
        check("".join(context.replace("_", c) for c in some for context in contexts))


@pytest.mark.quick
@pytest.mark.parametrize(
    "planes", ["used planes", pytest.param("all planes", marks=pytest.mark.scheduled)]
)
def test_every_code_point(characters: list[str], planes: str) -> None:
    """Beside letters, numbers and blanks. A text of many contexts is a text like any other."""
    some = of_used_planes(characters) if planes == "used planes" else characters
    in_texts_of(["a_b", " _ ", "1_"], some)


def random_text(size: int, seed: int, characters: list[str]) -> str:
    """Half of it any characters, half the representatives, mixed."""
    random = np.random.default_rng(seed)
    any_character = np.array(characters)[random.integers(0, len(characters), size)]
    known = np.array(REPRESENTATIVES)[random.integers(0, len(REPRESENTATIVES), size)]
    return "".join(np.where(random.random(size) < 0.5, any_character, known))


@pytest.mark.quick
def test_random_code_points(characters: list[str]) -> None:
    check(random_text(1_000_000, 1, characters))

"""Bytes that are no UTF-8 text, by the first of them."""

from __future__ import annotations

import pytest

from bpe_beam.corpus.encodings import HEAD_BYTES, is_binary, other_encoding

pytestmark = pytest.mark.quick

TEXTS = {
    "ru": "Привет мир\nдлинный мир\n",
    "el": "Καλημέρα κόσμε\n",
    "hi": "नमस्ते दुनिया\nदूसरी पंक्ति\n",
    "he": "שלום עולם\n",
    "th": "สวัสดี ชาวโลก\n",
    "ja": "これは日本語です。\n二行目。\n",
    "zh": "文本,编号\n一,二\n",
    "emoji": "Hi 😀 there\n😀\n",
    "en": "ab\n",
}


@pytest.mark.parametrize("name", ["UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"])
@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("times", [1, 1000])
def test_encodings_without_a_mark_are_named(name: str, language: str, times: int) -> None:
    data = (TEXTS[language] * times).encode(name)
    assert other_encoding(data[:HEAD_BYTES]) == f"seems to be {name}"
    assert other_encoding((TEXTS[language] * times).encode()[:HEAD_BYTES]) is None


@pytest.mark.parametrize("name", ["UTF-16", "UTF-32"])
def test_marks(name: str) -> None:
    for order in ("le", "be"):
        data = "\ufeffa".encode(f"{name}-{order}")
        assert other_encoding(data) == f"begins with the byte order mark of {name}"


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"", False),
        (("é" * 5000).encode()[: HEAD_BYTES - 1], False),
        (b"a NUL \0 in a text\n", False),
        (b"latin \xe9 and a NUL \0 " + b"a" * 100, False),
        (bytes(range(256)), True),
        (bytes(3), True),
        (b"\x1b[1mcolour\x1b[0m\b" * 9, False),
    ],
    ids=range(7),
)
def test_binary(data: bytes, binary: bool) -> None:
    assert is_binary(data) is binary
    assert other_encoding(data) is None

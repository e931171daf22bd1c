"""Text of tokens as a page shows it."""

from __future__ import annotations

import pytest

from bpe_beam.html_report.figures import visible, visible_bytes


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        (" the", " the"),
        ("a\nb\r\t\x00", "a\u23ceb<U+000D><U+0009><U+0000>"),
        ("\u202eabc\u2069\u200d", "<U+202E>abc<U+2069><U+200D>"),
        ("\u2028\ue000\U000e0041", "<U+2028><U+E000><U+E0041>"),
        ("\u0301e\u0301", "\u25cc\u0301e\u0301"),
        ("<b>&", "<b>&"),
    ],
)
def test_characters_that_cannot_be_seen_have_names(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_bytes_that_are_not_whole_characters_are_in_hex() -> None:
    assert visible_bytes("größe\n".encode()) == "größe\u23ce"
    assert visible_bytes(b" \xe4\xb8") == "<20 E4 B8>"

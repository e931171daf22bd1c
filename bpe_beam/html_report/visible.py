"""Text of tokens as a page shows it: characters that cannot be seen have their names instead."""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
"""Categories of characters that draw nothing, or that change how others are drawn."""


def visible(text: str) -> str:
    """Return a text without control characters, bidi marks and the like: they are `<U+202E>`.

    A line break is `⏎`. A combining mark at the start has a circle to stand on.
    """
    shown = "".join(map(_visible_character, text))
    return f"\u25cc{shown}" if text and unicodedata.combining(text[0]) else shown


def _visible_character(character: str) -> str:
    if character == "\n":
        return "\u23ce"
    if unicodedata.category(character) in _HIDDEN:
        return f"<U+{ord(character):04X}>"
    return character


def visible_bytes(data: bytes) -> str:
    """Return bytes as a page shows them: as text, or in hex if they are not whole characters."""
    try:
        return visible(data.decode())
    except UnicodeDecodeError:
        return f"<{data.hex(' ').upper()}>"

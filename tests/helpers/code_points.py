"""Code points, of which most planes have none that tests need by default."""

from __future__ import annotations

from collections.abc import Iterable

USED_PLANES = frozenset({0, 1, 2, 3, 14})
"""Unicode's planes with characters: the others are for private use, or empty."""


def of_used_planes(characters: Iterable[str]) -> list[str]:
    """Return those of some characters that are in the used planes."""
    return [character for character in characters if ord(character) >> 16 in USED_PLANES]

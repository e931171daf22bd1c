"""A fragment of a regular expression, spelled for each of the two engines that must agree on it.

Under `(?i:...)` the engines differ in `i` (`regex` adds the Turkish ones) and in letters that are
several in another case (`ß` is `ss`), which each finds in texts of its own choice. Both know that
`k`, `K` and the Kelvin sign are one letter.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple, NoReturn

from msgspec import Struct

from bpe_beam.errors import UsageError

Dialect = Literal["regex", "oniguruma"]
"""The engine whose rules an expression follows: the `regex` package, or Hugging Face's engine."""


class Flags(NamedTuple):
    """The flags at a position of an expression."""

    ignore_case: bool = False
    extended: bool = False  # x: blanks and comments are not part of the expression
    dot_all: bool = False  # `.` matches a line break too: s in `regex`, m in Oniguruma


class Fragment(Struct, frozen=True):
    """A fragment of an expression with the same meaning to both engines."""

    regex: str  # its spelling for `regex`, version 1 with MULTILINE. A quantifier may follow.
    oniguruma: str  # its spelling for Oniguruma, likewise
    least: int = 1  # the fewest characters that it matches
    # Whether it or a branch of it can match a position only, which Oniguruma refuses to repeat
    is_position: bool = False
    # The letters, folded, that a match under `(?i:...)` may begin and end with
    first: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()


class Reader:
    """The text of an expression, and the position up to which it is read."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect: Dialect = dialect
        self.at = 0

    @property
    def next(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        """Return the next character and go past it."""
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def accept(self, token: str) -> bool:
        """Go past `token` if it comes next; return whether it did."""
        is_next = self.text.startswith(token, self.at)
        self.at += len(token) if is_next else 0
        return is_next

    def until(self, end: str, start: int) -> str:
        """Return the text before the next `end`, and go past that."""
        close = self.text.find(end, self.at)
        if close < 0:
            self.refuse(start, f"has no {end} at its end")
        body = self.text[self.at : close]
        self.at = close + len(end)
        return body

    def refuse(self, start: int, why: str, remedy: str = "") -> NoReturn:
        """Raise UsageError for the construct from `start` to the current position."""
        construct = self.text[start : max(self.at, start + 1)] or "the end"
        advice = f"; {remedy}" if remedy else ""
        raise UsageError(
            f"pattern {self.text[:200]!r}: {construct[:60]} at character {start} {why}{advice}"
        )


READ_OTHERWISE = "means something else to Hugging Face's engine than to the regex package"
NOT_SUPPORTED = "is not supported: Hugging Face's engine and the regex package must agree on it"

_TURKISH = {"i": "iI\u0130", "I": "iI\u0131", "\u0131": "I\u0131"}
_OTHERS_OF_ASCII = {"k": "\u212a", "s": "\u017f"}
# Scripts without case: from Hebrew to Myanmar, of East Asia, the rarer ideographs.
_WITHOUT_CASE = ((0x590, 0x109F), (0x2E80, 0xA63F), (0xAC00, 0xD7FF), (0x20000, 0x3FFFF))
_LONGEST_RANGE = 1024  # of those whose characters are looked at
# Where Unicode has characters that fold to several.
_MULTIPLE = (range(0xDF, 0x590), range(0x1E00, 0x2000), range(0xFB00, 0xFB18))


@cache
def _joined_pairs() -> frozenset[str]:
    """The first two letters of everything that one character folds to."""
    folded = (chr(code).casefold() for codes in _MULTIPLE for code in codes)
    return frozenset(text[:2] for text in folded if len(text) > 1)


def letters_of_range(low: str, high: str) -> str | None:
    """Return the characters of a range if some have case, else an empty text."""
    first, last = ord(low), ord(high)
    if any(begin <= first and last <= end for begin, end in _WITHOUT_CASE):
        return ""
    if last - first > _LONGEST_RANGE:
        return None
    text = "".join(map(chr, range(first, last + 1)))
    return "" if text.lower() == text == text.upper() == text.casefold() else text


def may_join(before: frozenset[str], after: frozenset[str]) -> str | None:
    """Return two letters that may meet and that are one character in another case, if any."""
    if not before or not after:
        return None
    met = (pair for pair in _joined_pairs() if pair[0] in before and pair[1] in after)
    return min(met, default=None)


def turkish_variants(letter: str, dialect: Dialect) -> str | None:
    """Return what a letter matches if the engines differ in it; None if they agree."""
    if dialect == "regex" or letter not in _TURKISH:
        return _TURKISH.get(letter)
    return letter if letter == "\u0131" else "iI"


def variants(letters: str, dialect: Dialect) -> str:
    """Return ASCII characters in all their cases, without repetition."""
    cases = (
        turkish_variants(letter, dialect)
        or letter.lower() + letter.upper() + _OTHERS_OF_ASCII.get(letter.lower(), "")
        for letter in letters
    )
    return "".join(dict.fromkeys("".join(cases)))

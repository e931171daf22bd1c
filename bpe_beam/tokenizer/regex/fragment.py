"""A fragment of a regular expression, spelled for each of the two engines that must agree on it."""

from __future__ import annotations

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

"""Globs, part by part: the rule by which names match, for local folders and for stores."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

MAGIC = re.compile(r"[*?\[]")

_FIXED = re.compile(r"(?:[^*?\[]|\[[*?\[]\])*")


class Part(NamedTuple):
    """A part of a glob, between slashes.

    Attributes:
        text: The part. `*` and `?` match characters of a name, `[ab]` one character; the part `**`
            any number of folders.
        matches: Whether a name matches; for `**`, whether it may be the name of such a folder.
    """

    text: str
    matches: Callable[[str], bool]

    @property
    def fixed_start(self) -> tuple[str, bool]:
        """The characters that all matching names begin with, and whether they are all."""
        fixed = _FIXED.match(self.text)
        assert fixed is not None
        # `names.escape_glob` makes `[*]` of a star.
        return re.sub(r"\[([*?\[])\]", r"\1", fixed[0]), fixed.end() == len(self.text)


def parts_of(glob: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts of a glob.

    A name that begins with a dot matches only if a part does. On a store, `.` and `..` are names
    like any other.
    """
    dotted = any(text.startswith(".") for text in glob)

    def part(text: str) -> Part:
        match = re.compile("" if text == "**" else fnmatch.translate(text)).match

        def matches(name: str) -> bool:
            hidden = name.startswith(".") and name not in (".", "..")
            return (dotted or not hidden) and match(name) is not None

        return Part(text, matches)

    return tuple(map(part, glob))


def matches(names: Sequence[str], parts: Sequence[Part]) -> bool:
    """Return whether the names of a file's folders, and its own, match the parts of a glob."""
    if not names or not parts:
        return not names and not parts
    part, rest = parts[0], parts[1:]
    if part.text != "**":
        return part.matches(names[0]) and matches(names[1:], rest)
    if rest and matches(names, rest):
        return True
    is_file = not rest and len(names) == 1
    return part.matches(names[0]) and (is_file or matches(names[1:], parts))

"""Text for a terminal: its width, colours, the columns that characters take, aligned tables.

Colours and limits of width are for terminals. Other readers get plain text, whole. `NO_COLOR` turns
colours off, `FORCE_COLOR` on also where the reader is no terminal, such as `less -R`.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import TextIO

FALLBACK_COLUMNS = 80
"""The width of a terminal that does not report it."""

_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "on cyan": "30;46",
    "on green": "30;42",
    "on yellow": "30;43",
    "on magenta": "30;45",
}
_CUT = "..."


class Terminal:
    """A stream as a person sees it.

    Args:
        stream: The stream, such as stdout.
        environment: The environment variables; None: those of the process.

    Attributes:
        columns: The width of a line; None if the stream is no terminal and lines have no limit.
        colours: Whether styles are shown.
    """

    def __init__(self, stream: TextIO, environment: Mapping[str, str] | None = None) -> None:
        variables = os.environ if environment is None else environment
        overwritable = is_terminal(stream)
        self.columns = columns_of(stream) if overwritable else None
        self.colours = not variables.get("NO_COLOR") and (
            overwritable or bool(variables.get("FORCE_COLOR"))
        )

    def paint(self, text: str, style: str) -> str:
        """Return a text in a style.

        Args:
            text: The text.
            style: A name of a style, or "" for none.
        """
        if not (self.colours and style and text):
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

    def table(
        self,
        rows: Sequence[Sequence[str]],
        *,
        right: Collection[int] = (),
        styles: Sequence[str] = (),
        indent: str = "",
    ) -> list[str]:
        """Return lines of aligned cells; the last cell of a line is cut at the terminal's width.

        Args:
            rows: The cells; the first row is the heading. Rows have equally many cells.
            right: The numbers of the columns that are aligned at their right.
            styles: The style of each column; columns without one are plain.
            indent: The beginning of each line.
        """
        widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
        lines = []
        for number, row in enumerate(rows):
            room = None if self.columns is None else max(1, self.columns - width_of(indent))
            cells = []
            for column, cell in enumerate(row):
                last = column == len(row) - 1
                shown = cell if room is None else cut(cell, room)
                padding = "" if last and column not in right else _blank(widths[column], shown)
                style = "bold" if number == 0 else styles[column] if column < len(styles) else ""
                painted = self.paint(shown, style)
                cells.append(padding + painted if column in right else painted + padding)
                if room is not None:
                    room = max(1, room - max(widths[column], width_of(shown)) - 2)
            lines.append((indent + "  ".join(cells)).rstrip())
        return lines


def is_terminal(stream: TextIO) -> bool:
    """Return whether lines of a stream can be overwritten."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def columns_of(stream: TextIO) -> int:
    """Return the width of a terminal; `FALLBACK_COLUMNS` if it does not report it."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or FALLBACK_COLUMNS
    except (OSError, ValueError):
        return FALLBACK_COLUMNS


def width_of(text: str) -> int:
    """Return the columns that a text takes: two for wide characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """Return a text of at most so many columns; dots are in the place of what is left out.

    Args:
        text: The text.
        columns: The limit, at least 1.
    """
    if width_of(text) <= columns:
        return text
    dots = _CUT[:columns]
    room = columns - len(dots)
    for end, character in enumerate(text):
        room -= _width(character)
        if room < 0:
            return text[:end] + dots
    return text


def visible(text: str) -> str:
    """Return a text with escapes for the characters that a terminal would obey or not show."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def _blank(width: int, text: str) -> str:
    return " " * (width - width_of(text))

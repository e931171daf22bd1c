"""Text for a terminal: its width, colours, the columns that characters take, aligned tables.

Colours and limits of width are for terminals. Other readers get plain, uncut text. `NO_COLOR` turns
colours off, `FORCE_COLOR` on also where the reader is no terminal, such as `less -R`.

Lines that are too wide are wrapped, and cells of tables are cut. A path, a URL or a hash is never
divided: the terminal shows it on several lines, and a copy of it is whole.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TextIO

FALLBACK_COLUMNS = 80  # the width of a terminal that does not report it

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
_ELLIPSES = ("…", "...")
"""The mark at the end of a cell that is cut: the first that the stream can encode."""

_WHOLE = re.compile(r"[A-Za-z0-9._/:@=+~%?&#,<>\[\]'-]+")
"""A word that may be a path, a URL, an option or a hash."""

_MIN_TEXT = 4  # the columns that a cell of text keeps while other cells can become narrower

_MIN_ROOM = 10  # the minimum columns of a wrapped line after its indent


class Terminal:
    """A stream as a person sees it."""

    def __init__(self, stream: TextIO, environment: Mapping[str, str] | None = None) -> None:
        variables = os.environ if environment is None else environment
        overwritable = is_terminal(stream)
        # The width of a line; None if the stream is no terminal and lines have no limit.
        self.columns = columns_of(stream) if overwritable else None
        # Whether styles are shown.
        self.colours = not variables.get("NO_COLOR") and (
            overwritable or bool(variables.get("FORCE_COLOR"))
        )
        encoding = getattr(stream, "encoding", None) or "ascii"
        # The mark at the end of a cell that is cut.
        self.ellipsis = next(each for each in _ELLIPSES if _can_encode(each, encoding))

    def paint(self, text: str, style: str) -> str:
        """Return a text in a style."""
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
        """Return lines of aligned cells, which are cut where the terminal is too narrow.

        Texts are cut first, beginning with the widest; then headings of numbers, then numbers.
        """
        widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
        gap = 2
        if self.columns is not None:
            room = self.columns - width_of(indent)
            gaps = len(widths) - 1
            if sum(widths) + gap * gaps > room:
                limits = _width_limits(rows, right)
                gap = 1 if sum(limits[0]) + gap * gaps > room else gap
                widths = _narrowed(widths, limits, room - gap * gaps)
        lines = []
        for number, row in enumerate(rows):
            cells = []
            for column, cell in enumerate(row):
                shown = cut(cell, widths[column], self.ellipsis)
                padding = " " * (widths[column] - width_of(shown))
                style = "bold" if number == 0 else styles[column] if column < len(styles) else ""
                painted = self.paint(shown, style)
                if column in right:
                    cells.append(padding + painted)
                else:
                    cells.append(painted + (padding if column < len(row) - 1 else ""))
            lines.append((indent + (" " * gap).join(cells)).rstrip())
        return lines

    def wrap(self, text: str, *, indent: str = "", later: str | None = None) -> list[str]:
        """Return a text as lines that fit the terminal."""
        later = f"{indent}  " if later is None else later
        if self.columns is None:
            return [indent + text]
        if self.columns - width_of(later) < _MIN_ROOM:
            later = " " * max(0, self.columns - _MIN_ROOM)
        lines, line, room = [], indent, self.columns - width_of(indent)
        for word in _words(text, max(2, self.columns - width_of(later))):
            if width_of(word.rstrip()) > room and line.strip():
                lines.append(line.rstrip())
                line, room = later, self.columns - width_of(later)
            line += word
            room -= width_of(word)
        return [*lines, line.rstrip()]

    def wrap_message(self, message: str) -> str:
        """Return a message with its lines wrapped, but not those that are indented."""
        if self.columns is None:
            return message
        lines: list[str] = []
        for line in message.split("\n"):
            lines += [line] if line[:1] in ("", " ") else self.wrap(line)
        return "\n".join(lines)

    def wrap_command(self, command: str, *, indent: str = "") -> list[str]:
        """Return a command as lines that fit the terminal and that a shell reads as one."""
        if self.columns is None or "\n" in command:
            return [indent + command]
        return wrapped_command(indent + command, self.columns)

    def flow(self, texts: Iterable[tuple[str, str]]) -> list[str]:
        """Return styled texts one after another, on lines that fit the terminal."""
        lines = [""]
        room = self.columns
        for text, style in texts:
            while room is not None and width_of(text) > room:
                end = _fitting(text, room)
                lines[-1] += self.paint(text[:end], style)
                lines.append("")
                text, room = text[end:], max(2, self.columns or 2)
            lines[-1] += self.paint(text, style)
            room = None if room is None else room - width_of(text)
        return lines


def wrapped_command(command: str, columns: int) -> list[str]:
    """Return a command, maybe indented, as lines of at most so many columns."""
    line, *options = re.split(r" (?=--)", command)
    later = " " * (len(command) - len(command.lstrip()) + 4)
    lines = [line]
    for option in options:
        if lines[-1].strip() and width_of(lines[-1]) + width_of(option) + 3 > columns:
            lines[-1] += " \\"
            lines.append(later + option)
        else:
            lines[-1] += f" {option}"
    return lines


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _width_limits(rows: Sequence[Sequence[str]], right: Collection[int]) -> list[list[int]]:
    """Return the minimum widths of columns: preferred, then smaller ones, then one each."""
    columns = [list(map(width_of, column)) for column in zip(*rows, strict=True)]
    first, second = [], []
    for number, (heading, *cells) in enumerate(columns):
        widest = max(cells, default=0)
        first.append(max(heading, widest) if number in right else min(_MIN_TEXT, widest))
        second.append(max(1, widest) if number in right else min(_MIN_TEXT, max(1, widest)))
    return [first, second, [1] * len(columns)]


def _narrowed(widths: list[int], limits: Sequence[Sequence[int]], room: int) -> list[int]:
    """Return widths that fit a room, if they can: the widest columns become narrower first."""
    widths = [min(width, max(1, room)) for width in widths]
    for minimum in limits:
        while sum(widths) > room:
            over = [number for number, width in enumerate(widths) if width > minimum[number]]
            if not over:
                break
            widths[max(over, key=widths.__getitem__)] -= 1
    return widths


def _words(text: str, columns: int) -> Iterator[str]:
    """Yield the words of a text, each with the spaces after it.

    A word with characters outside of `_WHOLE`, such as a sentence in Chinese, is divided if it is
    wider than a line.
    """
    for word in re.findall(r" *[^ ]+ *|^ +$", text):
        while not _WHOLE.fullmatch(word.strip()) and width_of(word.rstrip()) > columns:
            end = max(1, _fitting(word, columns))
            yield word[:end]
            word = word[end:]
        yield word


def _fitting(text: str, columns: int) -> int:
    """Return the number of characters of a text that fit so many columns."""
    for end, character in enumerate(text):
        columns -= _width(character)
        if columns < 0:
            return end
    return len(text)


def is_terminal(stream: TextIO) -> bool:
    """Return whether lines of a stream can be overwritten."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # there is none, or it is closed
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


def cut(text: str, columns: int, ellipsis: str = _ELLIPSES[1]) -> str:
    """Return a text in at most so many columns; an ellipsis replaces the rest."""
    if width_of(text) <= columns:
        return text
    dots = ellipsis[:columns]
    return text[: _fitting(text, columns - len(dots))] + dots


def visible(text: str) -> str:
    """Return a text with escapes for characters that a terminal would obey or hide."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )

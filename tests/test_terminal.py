"""Widths, colours and tables for terminals."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Iterator
from typing import TextIO

import pytest

from bpe_beam.terminal import Terminal, columns_of, cut, visible, width_of

pytestmark = pytest.mark.quick


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[TextIO]:
    """A real terminal of 30 columns."""
    import fcntl
    import struct
    import termios

    monkeypatch.setenv("TERM", "xterm")
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    with os.fdopen(follower, "w") as stream:
        yield stream
    os.close(leader)


def test_colours_are_for_terminals(screen: TextIO) -> None:
    assert Terminal(screen, {}).paint("a", "red") == "\x1b[31ma\x1b[0m"
    assert Terminal(screen, {}).paint("a", "") == "a"
    assert Terminal(screen, {"NO_COLOR": "1"}).paint("a", "red") == "a"
    assert Terminal(screen, {"NO_COLOR": ""}).paint("a", "red") != "a"
    plain = io.StringIO()
    assert Terminal(plain, {}).paint("a", "red") == "a"
    assert Terminal(plain, {"FORCE_COLOR": "1"}).paint("a", "red") != "a"
    assert Terminal(plain, {"FORCE_COLOR": "1", "NO_COLOR": "1"}).paint("a", "red") == "a"


def test_a_terminal_that_obeys_nothing(screen: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal(screen, {})
    assert (terminal.columns, terminal.colours) == (None, False)


def test_width(screen: TextIO) -> None:
    assert Terminal(screen).columns == columns_of(screen) == 30
    assert Terminal(io.StringIO()).columns is None
    assert columns_of(io.StringIO()) == 80
    assert [width_of(text) for text in ("", "abc", "e\u0301", "世界", "한", "👍", "\u200d")] == [
        0, 3, 1, 4, 2, 2, 0,
    ]  # fmt: skip


def test_cut() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abc..."
    assert cut("世界世界", 7) == "世界..."
    assert cut("世界世界", 6) == "世..."
    assert cut("e\u0301" * 8, 7) == "e\u0301" * 4 + "..."
    for columns in range(1, 9):
        assert width_of(cut("世界世界x", columns)) <= columns


def test_visible() -> None:
    assert visible("世 a") == "世 a"
    assert visible("a\x1b[2J\n\u202e") == "a\\x1b[2J\\n\\u202e"


def test_table(screen: TextIO) -> None:
    rows = [("name", "n", "text"), ("世", "12", "x" * 40), ("a", "3", "y")]
    plain = Terminal(io.StringIO(), {})
    assert plain.table(rows, right=(1,)) == [
        "name   n  text",
        "世    12  " + "x" * 40,
        "a      3  y",
    ]
    narrow = Terminal(screen, {"NO_COLOR": "1"}).table(rows, right=(1,), indent="  ")
    assert narrow[1] == "  世    12  " + "x" * 15 + "..."
    assert max(map(width_of, narrow)) == 30
    painted = Terminal(screen, {}).table(rows, right=(1,), styles=("", "cyan"))
    assert painted[2] == "a      \x1b[36m3\x1b[0m  y"
    assert painted[0].startswith("\x1b[1mname\x1b[0m")

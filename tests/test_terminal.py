"""Widths, colours and tables for terminals."""

from __future__ import annotations

import io
import os
import pty
import subprocess
from collections.abc import Iterator
from typing import TextIO

import pytest

from bpe_beam import terminal
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
    dumb = Terminal(screen, {})
    assert (dumb.columns, dumb.colours) == (None, False)


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


WIDTHS = (24, 40, 60, 80, 200)


class Screen(io.StringIO):
    """A terminal of some width."""

    encoding = "utf-8"


@pytest.fixture(params=WIDTHS)
def narrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal without colours."""
    monkeypatch.setattr(terminal, "is_terminal", lambda stream: isinstance(stream, Screen))
    monkeypatch.setattr(terminal, "columns_of", lambda stream: request.param)
    return Terminal(Screen(), {"NO_COLOR": "1"})


def test_tables_fit(narrow: Terminal) -> None:
    """Cells of text are cut before numbers; columns are aligned; nothing is cut without need."""
    assert narrow.columns is not None
    rows = [("token", "id", "offsets", "text"), ("ab", "1234", "100-107", "'世界世界世界'")]
    lines = narrow.table(rows, right=(1, 2))
    assert max(map(width_of, lines)) <= narrow.columns
    assert all("1234" in line and "100-107" in line for line in lines[1:])
    words = [("count", "word", "a", "b")]
    words += [(f"{number:,}", "世" * number, "x" * number, "y") for number in (1, 30, 1000)]
    lines = narrow.table(words, right=(0,), indent="  ")
    assert narrow.columns - 3 <= max(map(width_of, lines)) <= narrow.columns
    assert [line.rstrip().endswith("y") for line in lines] == [False, True, True, True]
    assert len({width_of(line) for line in lines}) == 1
    assert "  1,000 " in lines[3]
    assert "…" in lines[3]
    many = [("name", *(f"heading {number}" for number in range(9)))]
    many += [("世" * 9, *("123,456" for _ in range(9)))]
    lines = narrow.table(many, right=range(1, 10))
    assert max(map(width_of, lines)) <= narrow.columns
    if narrow.columns >= 80:
        assert lines[1].count("123,456") == 9


def test_an_ellipsis_that_the_terminal_has(
    narrow: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert narrow.ellipsis == "…"
    monkeypatch.setattr(Screen, "encoding", "ascii")
    assert Terminal(Screen(), {}).ellipsis == "..."


def test_wrap(narrow: Terminal) -> None:
    assert narrow.columns is not None
    text = f"some words of prose that go on, {'世界' * 14} and end"
    lines = narrow.wrap(text, indent="  ")
    assert max(map(width_of, lines)) <= narrow.columns
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(line.startswith("  ") for line in lines)
    path = "/folder/" + "x" * 300
    lines = narrow.wrap(f"see {path} there", indent="> ")
    assert lines[0] == "> see"
    assert lines[1:] == [f">   {path}", ">   there"]
    message = narrow.wrap_message(f"{text}\n  {text}")
    assert message.splitlines()[-1] == f"  {text}"
    assert message.splitlines()[:-1] == narrow.wrap(text)


def test_commands_are_one_command_for_a_shell(narrow: Terminal) -> None:
    assert narrow.columns is not None
    command = "bpe-beam train --counts my/counts --vocab-size 32000 --output tokenizer"
    lines = narrow.wrap_command(command, indent="  ")
    script = "bpe-beam() { printf '%s\\n' bpe-beam \"$@\"; }\n" + "\n".join(lines)
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout.split() == command.split()
    assert max(map(width_of, lines)) <= max(30, narrow.columns)
    assert narrow.wrap_command("cat <<EOF\nx\nEOF") == ["cat <<EOF\nx\nEOF"]


def test_flow(narrow: Terminal) -> None:
    assert narrow.columns is not None
    text = "x世" * 101
    lines = narrow.flow((character, "red") for character in text)
    assert "".join(lines) == text
    assert all(narrow.columns - 1 <= width_of(line) <= narrow.columns for line in lines[:-1])
    assert narrow.flow([]) == [""]


def test_other_readers_get_lines_whole() -> None:
    plain = Terminal(io.StringIO(), {})
    text = "word " * 100
    assert plain.wrap(text, indent="  ") == [f"  {text}"]
    assert plain.wrap_message(text) == text
    assert plain.wrap_command(f"a --b {text}") == [f"a --b {text}"]
    assert plain.flow([(text, "red"), (text, "")]) == [text + text]


def test_there_may_be_no_stream() -> None:
    assert Terminal(None, {}).columns is None


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
    assert narrow[1] == "  世    12  " + "x" * 17 + "…"
    assert max(map(width_of, narrow)) == 30
    painted = Terminal(screen, {}).table(rows, right=(1,), styles=("", "cyan"))
    assert painted[2] == "a      \x1b[36m3\x1b[0m  y"
    assert painted[0].startswith("\x1b[1mname\x1b[0m")

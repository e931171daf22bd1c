"""Runs every block of the tutorials, in order, as a reader would."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pages
import pytest

TUTORIALS = Path(__file__).parent.parent / "docs" / "tutorials"


def tutorial(tmp_path: Path, name: str) -> list[str]:
    """Run the blocks of a tutorial; returns what each printed."""
    folder = pages.with_command(tmp_path)
    text = (TUTORIALS / f"{name}.md").read_text("utf-8")
    return [pages.run(folder, *block) for block in pages.blocks(text)]


@pytest.mark.slow
def test_train(tmp_path: Path) -> None:
    tutorial(tmp_path, "train")

    assert (tmp_path / "tokenizer" / "tokenizer.json").exists()


@pytest.mark.slow
def test_tokenize(tmp_path: Path) -> None:
    *_, read, _, _ = tutorial(tmp_path, "tokenize")

    assert "documents; the last begins with" in read
    assert (tmp_path / "tokens-arrow" / "__manifest").exists()


@pytest.mark.slow
def test_beam(tmp_path: Path) -> None:
    _, shown, written, _ = tutorial(tmp_path, "beam")

    assert "text" in shown
    assert written == "2 documents\n"


@pytest.mark.slow
def test_stream(tmp_path: Path) -> None:
    folder = pages.with_command(tmp_path)
    blocks = pages.blocks((TUTORIALS / "stream.md").read_text("utf-8"))
    train, sink, commands, follow, names = (partial(pages.run, folder, *each) for each in blocks)
    train()

    shown = sink()
    assert shown.count("m63") == 1  # the broken message
    commands()
    assert follow().splitlines() == ["8 windows with 37 sequences", "[33, 33, 33, 33]"]
    before = names()
    sink()
    assert names() == before


@pytest.mark.slow
def test_languages(tmp_path: Path) -> None:
    *_, verified, inspected, read = tutorial(tmp_path, "languages")

    assert "english" not in verified
    assert "shuffle seed         1\n" in inspected
    assert [line.split()[0] for line in read.splitlines()] == ["python", "english"]


@pytest.mark.slow
def test_mix(tmp_path: Path) -> None:
    *_, read = tutorial(tmp_path, "mix")

    first, second = (line.split() for line in read.splitlines())
    assert int(second[1]) > 100
    assert 584 <= int(first[1]) < 900
    assert int(first[3]) >= int(second[3]) > 0  # the second has no email


@pytest.mark.slow
def test_compare(tmp_path: Path) -> None:
    shown = tutorial(tmp_path, "compare")

    assert sum("bytes per token" in line for line in shown[-2].splitlines()) == 4
    whole, *sizes = shown[-1].splitlines()
    assert "of the words kept whole" in whole
    assert [line.split()[0] for line in sizes] == ["1000", "4000", "8000", "16000"]


@pytest.mark.quick
def test_each_tutorial_has_a_test() -> None:
    names = [path.stem for path in TUTORIALS.glob("*.md")]
    assert len(names) == 7
    assert all(f"test_{name}" in globals() for name in names)

"""`bpe-beam counts show`: the most frequent words."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from command_line import run, run_whole
from counted_sources import KINDS, SOURCES, TEXTS, count, rows, words
from made_text import write


@pytest.mark.parametrize("kind", ["plain", "both"])
def test_against_a_dict(corpus: Path, tmp_path: Path, kind: str) -> None:
    folder = count(corpus, tmp_path / "in", tuple(TEXTS), *KINDS[kind])
    ran = run("counts", "show", folder, "--top", "30", "--summary-file", tmp_path / "s.json")
    total = words(folder)
    best = sorted(total.items(), key=lambda row: (-row[1], row[0].encode()))[:30]
    found = json.loads((tmp_path / "s.json").read_bytes())["most_frequent_words"]
    assert [(row["word"], row["count"]) for row in found] == best
    lines = ran.out.decode().splitlines()
    assert len(lines) == 1 + len(best)
    for line, (word, times) in zip(lines[1:], best, strict=True):
        assert line.endswith(f"  {word!r}")
        assert line.split()[0] == f"{times:,}"
    assert lines[0].split() == ["count", "share", *(["en", "other", "zh"] * (kind == "both")),
                                "word"]  # fmt: skip
    by_source: dict[str, Counter[str]] = {}
    for row in rows(folder):
        by_source.setdefault(row.get("source", ""), Counter())[row["word"]] = row["count"]
    for row in found:
        assert row["share"] == row["count"] / total.total()
        if kind == "both":
            assert row["sources"] == {
                name: by_source[name][row["word"]]
                for name in sorted(by_source)
                if row["word"] in by_source[name]
            }


def test_some_sources(corpus: Path, tmp_path: Path) -> None:
    folder = count(corpus, tmp_path / "in", tuple(TEXTS), *SOURCES)
    arguments = ("--source", "zh", "--source", "en", "--top", "1000000", "--min-count", "2")
    ran = run("counts", "show", folder, *arguments, "--summary-file", tmp_path / "s.json")
    figures = json.loads((tmp_path / "s.json").read_bytes())
    total: Counter[str] = Counter()
    for row in rows(folder):
        if row["source"] != "other":
            total[row["word"]] += row["count"]
    assert figures["words_of_sources"] == total.total()
    found = {row["word"]: row["count"] for row in figures["most_frequent_words"]}
    assert found == {word: times for word, times in total.items() if times > 1}
    assert ran.out.decode().splitlines()[0].split() == ["count", "share", "en", "zh", "word"]


def test_words_that_a_terminal_would_obey(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", ["\x1b[2J \x1b[2J"])
    arguments = ("--pretokenizer", "whitespace_split", "--source", "\x1b[1m=*")
    run_whole("count", "--input", tmp_path / "a.txt", *arguments, "--output", tmp_path / "in")
    for job in (("counts", "show"), ("inspect",)):
        ran = run(*job, tmp_path / "in")
        assert ran.code == 0
        assert b"\x1b" not in ran.out


def test_many_sources_have_no_columns(tmp_path: Path) -> None:
    for i in range(9):
        write(tmp_path / "in" / f"s{i}.txt", ["x"])
    named = [f"--source=s{i}=s{i}*" for i in range(9)]
    run_whole("count", "--input", f"{tmp_path}/in/*", *named, "--output", tmp_path / "c")
    lines = run("counts", "show", tmp_path / "c").out.decode().splitlines()
    assert lines[0].split() == ["count", "share", *(f"s{i}" for i in range(8)), "word"]
    assert lines[-1].startswith("9 sources; these are the first 8")

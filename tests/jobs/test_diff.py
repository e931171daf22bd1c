"""`bpe-beam diff`: its lines, its JSON, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run, run_whole
from counted_sources import SOURCES, TEXTS, count, words, write_corpus

from bpe_beam import Tokenizer


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with counts by source, and two tokenizers trained from them."""
    root = tmp_path_factory.mktemp("diff")
    write_corpus(root / "corpus")
    count(root / "corpus", root / "counts", tuple(TEXTS), *SOURCES)
    for name, size, token in (("a", 300, "<s>"), ("b", 340, "<\x1b[2J>")):
        arguments = ("--vocab-size", size, "--special-token", token)
        run_whole("train", "--counts", root / "counts", *arguments, "--output", root / name)
    return root


def test_equal_tokenizers(made: Path) -> None:
    ran = run("diff", made / "a", made / "a" / "tokenizer.json", "--counts", made / "counts")
    assert ran.code == 0, ran.err
    lines = ran.out.decode().splitlines()
    number = len(words(made / "counts"))
    assert lines[2:] == [
        "no part, token, id or merge differs",
        f"words: all {number:,} are encoded equally",
    ]


def test_lines(made: Path) -> None:
    ran = run("diff", made / "a", made / "b", "--counts", made / "counts", "--top", 3)
    assert ran.code == 1
    text = ran.out.decode()
    assert "\x1b" not in text
    lines = text.splitlines()
    assert lines[0].startswith("- a: 300 tokens, 43 merges, ")
    assert lines[1].startswith("+ b: 340 tokens, 83 merges, ")
    assert lines[2:6] == ["parts", '  added token "<s>"', "    - special", "    + none"]
    assert "tokens: 299 in both, 1 only in a, 41 only in b" in lines
    assert "  and 31 more" in lines
    assert "merges: the first 43 are equal; 43 in both, 0 only in a, 40 only in b" in lines
    report: Any = json.loads(
        run("diff", made / "a", made / "b", "--counts", made / "counts", "--format", "json").out
    )
    most = report["words"]["most_frequent"][:3]
    shown = [line.split()[0] for line in lines[-4:-1]]
    assert shown == [f"{row['count']:,}" for row in most]
    assert lines[-1] == f"  and {report['words']['other_unique_words'] - 3:,} more"


def test_reserved_tokens_are_listed_as_one(made: Path, tmp_path: Path) -> None:
    reserved = [f"<|reserved_{number}|>" for number in range(40)]
    path = made / "a" / "tokenizer.json"
    (tmp_path / "more.json").write_bytes(with_added_tokens(path.read_bytes(), reserved))
    ran = run("diff", path, tmp_path / "more.json")
    lines = ran.out.decode().splitlines()
    assert lines[2:6] == [
        "parts",
        '  added token "<|reserved_0|>" and 39 more with other numbers',
        "    - none",
        "    + special",
    ]
    assert not any(line.startswith("  added token") for line in lines[4:])


def with_added_tokens(file: bytes, contents: list[str]) -> bytes:
    spec = json.loads(file)
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    spec["added_tokens"] += [
        {"id": 1000 + at, "content": content, "special": True, **flags}
        for at, content in enumerate(contents)
    ]
    return json.dumps(spec).encode()


def test_json_and_summary(made: Path, tmp_path: Path) -> None:
    ran = run(
        *("diff", made / "a", made / "b", "--counts", made / "counts", "--format", "json"),
        *("--summary-file", tmp_path / "summary.json", "--quiet"),
    )
    assert (ran.code, ran.err) == (1, "")
    report = json.loads(ran.out)
    summary = json.loads((tmp_path / "summary.json").read_bytes())
    assert not report["same"]
    assert len(report["tokens"]["only_b"]) == summary["tokens_only_b"] == 41
    assert summary["other_words"] == report["words"]["other_words"] > 0
    counted = words(made / "counts")
    a, b = (Tokenizer.from_file(str(made / name)) for name in "ab")
    assert report["words"]["tokens_a"] == sum(n * len(a.encode(w)) for w, n in counted.items())
    assert report["words"]["tokens_b"] == sum(n * len(b.encode(w)) for w, n in counted.items())


def test_errors_are_not_differences(made: Path) -> None:
    for args in (("/none", made / "a"), (made / "a", made / "a", "--counts", made / "a"), ("x",)):
        ran = run("diff", *args)
        assert ran.code == 2
        assert ran.err.startswith("bpe-beam diff: ")
    damaged = made / "damaged"
    damaged.mkdir()
    for path in (made / "counts").iterdir():
        (damaged / path.name).write_bytes(path.read_bytes()[:-1] if path.is_file() else b"")
    ran = run("diff", made / "a", made / "b", "--counts", damaged)
    assert ran.code == 2


def test_words_of_another_pre_tokenizer(made: Path) -> None:
    arguments = ("--vocab-size", 300, "--pretokenizer", "whitespace_split", "--alphabet", "seen")
    run_whole("train", "--input", made / "corpus", *arguments, "--output", made / "c")
    ran = run("diff", made / "a", made / "c", "--counts", made / "counts")
    assert ran.code == 1
    assert "c: the tokenizer splits text differently than the counts" in ran.err

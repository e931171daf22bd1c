"""`bpe-beam encode`: text on stdin or as an argument, ids and tables on stdout."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from command_line import run_for_output as run

from bpe_beam.tokenizer.components.models import WordLevel
from bpe_beam.tokenizer.components.pretokenizers import pretokenizer_from_name
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]


def test_ids_come_on_one_line(tokenizer: str) -> None:
    ids = Tokenizer.from_file(tokenizer).encode("hell he")
    assert len(ids) == 3
    assert run("encode", "--tokenizer", tokenizer, "hell he") == (
        (" ".join(map(str, ids)) + "\n").encode(),
        "",
    )
    assert run("encode", "--tokenizer", tokenizer, "") == (b"\n", "")


def test_stdin_is_taken_as_it_is_but_for_one_newline(tokenizer: str) -> None:
    reference = Tokenizer.from_file(tokenizer)
    for data, text in (
        (b"", ""),
        (b"\n", ""),
        (b"he\n", "he"),
        (b"he\n\n", "he\n"),
        (b" he \r\n", " he \r"),
        ("hé\n".encode(), "hé"),
        (b"a\x00b", "a\x00b"),
    ):
        out, _ = run("encode", "--tokenizer", tokenizer, stdin=data)
        assert [int(word) for word in out.split()] == reference.encode(text)


def test_stdin_that_is_not_utf8_is_refused_with_its_place(tokenizer: str) -> None:
    out, said = run("encode", "--tokenizer", tokenizer, stdin=b"ab\xff\n", code=1)
    assert out == b""
    assert said == "bpe-beam encode: standard input is not UTF-8: byte 0xff at offset 2\n"


def test_special_tokens_are_text_unless_allowed(tokenizer: str) -> None:
    text = "he<|end|>"
    plain, _ = run("encode", "--tokenizer", tokenizer, text)
    assert len(plain.split()) > 2
    for allowed in ("all", "<|end|>"):
        out, _ = run("encode", "--tokenizer", tokenizer, "--allowed-special", allowed, text)
        assert out.split()[-1] == b"0"
        assert len(out.split()) == 2
    _, said = run("encode", "--tokenizer", tokenizer, "--allowed-special", "<x>", text, code=2)
    assert "<x>" in said


def test_a_table_shows_tokens_ids_and_places(tokenizer: str) -> None:
    out, _ = run("encode", "--tokenizer", tokenizer, "--show", "hel hé<|end|>")
    lines = out.decode().splitlines()
    assert lines[0].split() == ["token", "id", "offsets", "text"]
    assert lines[1].split() == ["hel", "260", "0-3", "'hel'"]
    assert [line.split()[2] for line in lines[2:6]] == ["3-4", "4-5", "5-6", "5-6"]
    assert [line.split()[0] for line in lines[2:6]] == ["Ġ", "h", "Ã", "©"]
    # A terminal that has no such characters is no reason to fail.
    out, _ = run("encode", "--tokenizer", tokenizer, "--show", " h", encoding="ascii")
    assert rb"\u0120" in out


def test_a_table_does_not_drive_the_terminal(tokenizer: str) -> None:
    out, _ = run(
        "encode", "--tokenizer", tokenizer, "--show", "--allowed-special", "all", "<\x1b[2J>"
    )
    assert b"\x1b" not in out


def test_tokens_in_colours(tokenizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, _ = run("encode", "--tokenizer", tokenizer, "--show", "hel\thé")
    monkeypatch.setenv("FORCE_COLOR", "1")
    out, _ = run("encode", "--tokenizer", tokenizer, "--show", "hel\thé")
    first, empty, *table = out.decode().splitlines()
    parts = [part.split("m", 1) for part in first.split("\x1b[") if part != "0m" and part]
    texts = [text for code, text in parts if code != "0"]
    # The two bytes of the last character are one part.
    assert texts == ["hel", "\\t", "h", "é"]
    styles = [code for code, _ in parts if code != "0"]
    assert all(one != other for one, other in pairwise(styles))
    assert empty == ""
    assert len(table) == len(plain.splitlines())
    assert re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(table)) + "\n" == plain.decode()
    monkeypatch.setenv("NO_COLOR", "1")
    assert run("encode", "--tokenizer", tokenizer, "--show", "hel\thé")[0] == plain


def test_wide_characters_are_aligned(tmp_path: Path) -> None:
    vocab = {"世界": 0, "a": 1, "<unk>": 2}
    path = tmp_path / "tokenizer.json"
    whitespace = pretokenizer_from_name("whitespace_split")
    spec = TokenizerSpec(WordLevel(vocab), pre_tokenizer=whitespace)
    Tokenizer(spec).save(str(path))
    out, _ = run("encode", "--tokenizer", str(path), "--show", "世界 a")
    assert out.decode().splitlines() == [
        "token  id  offsets  text",
        "世界    0      0-2  '世界'",
        "a       1      3-4  'a'",
    ]


def test_tokens_of_the_post_processor_are_inserted(tmp_path: Path, tokenizer: str) -> None:
    document = json.loads(Path(tokenizer).read_bytes())
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<|end|>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [0], "tokens": ["<|end|>"]}},
    }
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document))
    for arguments, added in (("--add-special-tokens",), b"0 260\n"), ((), b"260\n"):
        out, _ = run("encode", "--tokenizer", str(path), *arguments, "hel")
        assert out == added
    out, _ = run("encode", "--tokenizer", str(path), "--add-special-tokens", "--show", "hel")
    assert [line.split()[:3] for line in out.decode().splitlines()[1:]] == [
        ["<|end|>", "0", "0-0"],
        ["hel", "260", "0-3"],
    ]


def test_a_tiktoken_file_is_refused_with_the_way_to_convert_it(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_text("IQ== 0\nIg== 1\n")
    for job in ("encode", "decode"):
        _, said = run(job, "--tokenizer", str(path), "1", code=2)
        assert "Tokenizer.from_tiktoken(path, pretokenizer=...)" in said
        assert "as a tokenizer.json" in said


def test_summaries_for_programs(tokenizer: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    run("encode", "--tokenizer", tokenizer, "--summary-file", str(path), "hé")
    assert json.loads(path.read_text()) == {
        "job": "encode",
        "text_bytes": 3,
        "characters": 2,
        "tokens": 3,
    }
    run("decode", "--tokenizer", tokenizer, "--summary-file", str(path), "260")
    assert json.loads(path.read_text()) == {"job": "decode", "tokens": 1, "text_bytes": 3}


@pytest.mark.parametrize(("job", "what"), [("encode", "the text"), ("decode", "the ids")])
def test_who_types_is_told_what_is_waited_for(job: str, what: str, tokenizer: str) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"72\n\x04")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bpe_beam", job, "--tokenizer", tokenizer],
            stdin=theirs,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=600,
            check=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.stderr.decode() == f"type {what}, then Ctrl-D on a new line:\n"
    assert done.stdout


def test_settings_that_are_not_applied_are_said(tokenizer: str, tmp_path: Path) -> None:
    """And the text keeps all its tokens."""
    file = json.loads(Path(tokenizer).read_text())
    file["truncation"] = {
        "direction": "Right",
        "max_length": 1,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    cutting = tmp_path / "tokenizer.json"
    cutting.write_text(json.dumps(file))
    plain, _ = run("encode", "--tokenizer", tokenizer, "hell he")
    out, said = run("encode", "--tokenizer", str(cutting), "hell he")
    assert out == plain
    assert said == (
        "warning: the tokenizer's truncation is not applied: texts keep all their tokens and get "
        "no others\n"
    )
    out, _ = run("inspect", str(cutting))
    assert b'{"direction":"Right","max_length":1,' in out

"""The plan job, and files that are excluded: what is shown, what is written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from command_line import run_process

from bpe_beam.corpus.plan import Plan
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    (folder / "b").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\n" * 500)
    (folder / "b" / "c.jsonl").write_text('{"text": "three"}\n' * 100)
    (folder / "b" / "d.csv.gz").write_bytes(gzip.compress(bytes(range(256)) * 40))
    return folder


def test_what_is_shown(corpus: Path) -> None:
    ran = run_process(
        "plan",
        *("--input", f"{corpus}/**/*", corpus / "a.txt"),
        *("--exclude", f"{corpus}/b/*.jsonl", f"{corpus}/none*", "--range-bytes", "300"),
    )
    assert ran.code == 0, ran.err
    shown = " ".join(ran.out.decode().split())
    for words in (
        "files 2",
        "files excluded 1",
        "duplicate inputs a.txt",
        "files read by one worker b/d.csv.gz",
        "csv in gzip 1 file",
        "text 1 file, 4 kB",
        "range bytes 300",
        "splits 15",
        "286 B: a.txt[285:571]",
    ):
        assert words in shown, (words, shown)


def test_names_that_nobody_would_see(tmp_path: Path) -> None:
    for name in ("  ", " a.txt", "b\n.txt", "c d.txt"):
        (tmp_path / name).write_text("x\n")
    ran = run_process("plan", "--input", f"{tmp_path}/*")
    assert ran.code == 0, ran.err
    shown = ran.out.decode()
    for name in ("'  '", "' a.txt'", r"'b\n.txt'", "c d.txt"):
        assert f"{name} (2 B)" in shown
        assert f" {name}[0:2]" in shown


def test_the_plan_as_json(corpus: Path, tmp_path: Path) -> None:
    arguments = ("plan", "--input", f"{corpus}/**/*", "--range-bytes", "1KB")
    to_stdout = run_process(*arguments, "--output", "-")
    assert run_process(*arguments, "--output", tmp_path / "plan.json").code == 0
    assert (tmp_path / "plan.json").read_bytes() == to_stdout.out
    plan = Plan.from_json(json.loads(to_stdout.out), str(corpus))
    assert [file.name for file in plan.files] == ["a.txt", "b/c.jsonl", "b/d.csv.gz"]
    counts = tmp_path / "counts"
    ran = run_process(
        *("count", "--input", f"{corpus}/**/*", "--exclude", f"{corpus}/b/d*"),
        *("--range-bytes", "1KB", "--output", counts),
    )
    assert ran.code == 0, ran.err
    counted = Plan.from_json(json.loads((counts / "__plan").read_bytes()), str(corpus))
    assert [file.name for file in counted.files] == ["a.txt", "b/c.jsonl"]
    assert Storage().read_bytes(counted.url(0)).startswith(b"one")


def test_nothing_left(corpus: Path) -> None:
    ran = run_process("plan", "--input", f"{corpus}/*", "--exclude", f"{corpus}/*")
    assert ran.code == 2
    assert "all 1 are excluded" in ran.err

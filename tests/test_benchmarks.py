"""The benchmarks work: corpora of small archives, a small comparison, the pages made from it."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import re
import struct
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import made_text
import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


def script(name: str) -> ModuleType:
    """A module of the benchmarks, which are no package."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


sys.path.insert(0, str(BENCHMARKS))
compare = script("compare")
corpora = script("corpora")
report = script("report")


def packed(files: dict[str, bytes], mode: str = "w") -> bytes:
    """A tar archive."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def test_files_of_archives_in_archives() -> None:
    inner = packed({"linux/a.c": b"int a;", "linux/b.o": b"\0"}, "w:xz")
    whole = packed({"usr/c.h.gz": gzip.compress(b"int c;"), "usr/src.tar.xz": inner, "d.py": b"d"})

    with tarfile.open(fileobj=io.BytesIO(whole), mode="r|") as archive:
        found = dict(corpora.files_of(archive, (".c", ".h")))

    assert found == {"usr/c.h.gz": b"int c;", "linux/a.c": b"int a;"}


def test_documents_of_each_format() -> None:
    page = b"<head><title>x</title></head><p>Caf&eacute; <b>au</b> lait</p><p>two</p>"
    assert list(corpora.documents_of("a.html", page, False)) == [" Café au lait\ntwo\n"]
    assert list(corpora.documents_of("a.html", page, True)) == [page.decode()]

    messages = [b"Content-Type: text/plain", "Größe".encode(), b"zwei\0drei"]
    offsets = [28 + 8 * 3 + sum(map(len, messages[:i])) for i in range(3)]
    rows = [struct.pack("<2I", len(m), at) for m, at in zip(messages, offsets, strict=True)]
    catalog = struct.pack("<7I", 0x950412DE, 0, 3, 0, 28, 0, 0) + b"".join(rows + messages)
    assert list(corpora.documents_of("de.mo", catalog, False)) == ["Größe\nzwei\ndrei"]

    poems = [{"title": f"{i}", "paragraphs": ["一", "二"]} for i in range(21)]
    found = list(corpora.documents_of("a/quantangshi/1.json", json.dumps(poems).encode(), False))
    assert len(found) == 2
    assert found[1] == "20\n一\n二"


def test_long_lines_count_once() -> None:
    seen: set[int] = set()
    line = "a line of more than twenty characters"
    assert corpora.without_repeats(f"{line}\n}}", seen, False) == f"{line}\n}}"
    assert corpora.without_repeats(f"{line}\n}}\nnew", seen, False) == "}\nnew"
    assert corpora.without_repeats("whole", seen, True) == "whole"
    assert corpora.without_repeats("whole", seen, True) == ""


def test_parts_have_their_shares_of_each_package(tmp_path: Path) -> None:
    found = [(f"{i}", "ab"[i % 2], "x" * 100) for i in range(4000)]

    corpora.write_parts(tmp_path, found, (1, 3, 10))

    parts = [(tmp_path / f"part-{i}.jsonl").read_text().splitlines() for i in range(3)]
    assert [round(len(part) / 400) for part in parts] == [1, 2, 7]
    assert all(0.4 < sum('"a"' in line for line in part) / len(part) < 0.6 for part in parts)


def test_reports_and_tuning_share_no_package() -> None:
    for kind in corpora.KINDS.values():
        assert not set(kind.report) & set(kind.tune)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, str]:
    """The results of a small comparison, what it printed, and what it printed when run again.

    The contestants have this interpreter. The encoder of one has another tokenizer.
    """
    folder = tmp_path_factory.mktemp("benchmarks")
    texts = made_text.documents(200, seed=1)
    english = folder / "corpora" / "english-report.jsonl"
    made_text.write(english, texts)
    (folder / "corpora" / "mixed-1").mkdir()
    english.with_name("mixed-1").joinpath("part-0.jsonl").write_bytes(english.read_bytes())
    for name, size in (("gpt2", 600), ("other", 500)):
        train = [sys.executable, "-m", "bpe_beam", "train", "--quiet", "--input", str(english)]
        train += ["--vocab-size", str(size), "--output", str(folder / name)]
        subprocess.run(train, check=True)
        (folder / "tokenizers").mkdir(exist_ok=True)
        (folder / name / "tokenizer.json").rename(folder / "tokenizers" / f"{name}.json")
    wrong = folder / "wrong"
    other = '"$(printf %s "$4" | sed s/gpt2.json/other.json/)"'
    wrong.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$1" "$2" "$3" {other}\n')
    wrong.chmod(0o755)
    command = [sys.executable, str(BENCHMARKS / "compare.py"), str(folder), "--runs", "2"]
    command += ["--largest", "1", "--corpora", "english", "mixed-1", "--tokenizers", "gpt2"]
    command += ["--contestants", "bpe-beam", "tokenizers-0.23", "tiktoken", "tokenizers-1.0"]
    command += ["--results", str(folder / "results.json"), "--once", "0"]
    for name in ("tokenizers-0.23", "tiktoken"):
        command += ["--python", f"{name}={sys.executable}"]
    command += ["--python", f"tokenizers-1.0={wrong}"]
    printed = [
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        for _ in range(2)
    ]
    return json.loads((folder / "results.json").read_text()), printed[0], printed[1]


@pytest.mark.slow
@pytest.mark.slow
def test_a_comparison_measures_each_row(results: tuple[dict[str, Any], str, str]) -> None:
    content, _, again = results
    rows = {(e["task"], e["corpus"], e["contestant"]): e for e in content["rows"]}

    for task in ("train", "tokenize", "encode", "decode"):
        for contestant, runs in (("bpe-beam", 2), ("tokenizers-0.23", 1)):
            entry = rows[task, "english", contestant]
            assert entry["status"] == "ok", entry
            assert len(entry["runs"]) == runs
            assert all(run["peak"] > 1e6 for run in entry["runs"])
    assert rows["train", "english", "tokenizers-0.23"]["agreement"] == 1
    assert set(rows["encode", "english", "tiktoken"]["runs"][0]["cpu"]) == {
        "load", "first", "cold", "warm",
    }  # fmt: skip
    assert rows["count", "mixed-1", "bpe-beam"]["status"] == "ok"
    assert content["versions"]["tiktoken"]
    assert again.count(" s ") == 0, "all rows were kept"


@pytest.mark.slow
@pytest.mark.slow
def test_a_wrong_answer_has_no_times(results: tuple[dict[str, Any], str, str]) -> None:
    entries = [e for e in results[0]["rows"] if e["contestant"] == "tokenizers-1.0"]
    statuses = {e["task"]: (e["status"], e["runs"]) for e in entries if e["task"] != "train"}
    assert statuses["encode"] == ("differs from tiktoken", [])
    assert statuses["tokenize"] == ("differs from tokenizers-0.23", [])


def answers(**parts: str) -> dict[str, Any]:
    return {"status": "ok", "runs": [{}], "answer": parts}


def test_a_slow_reference_judges_its_part_of_the_text(tmp_path: Path) -> None:
    entries = {
        "bpe-beam": answers(prefix="right", all="right"),
        "gigatoken": answers(prefix="right", all="wrong"),
        "fastokens": answers(prefix="wrong", all="right"),
        "tokenizers-1.0": answers(prefix="wrong", all="wrong"),
        "tiktoken": answers(prefix="right"),
    }

    compare.Comparison.judge(None, compare.Row("encode", "english", "gpt2", ()), entries)

    right = [name for name, entry in entries.items() if entry["runs"]]
    assert right == ["bpe-beam", "tiktoken"]
    assert entries["gigatoken"]["status"] == "differs from most others"
    assert entries["fastokens"]["status"] == "differs from tiktoken"


def test_one_reference_may_be_wrong_where_the_first_one_has_no_answer() -> None:
    entries = {
        "bpe-beam": answers(prefix="right", all="right"),
        "gigatoken": answers(prefix="right", all="right"),
        "tokenizers-1.0": answers(prefix="right", all="wrong"),
        "tiktoken": answers(prefix="right"),
    }

    compare.Comparison.judge(None, compare.Row("encode", "chinese", "cl100k_base", ()), entries)

    assert not entries["tokenizers-1.0"]["runs"]
    assert entries["bpe-beam"]["runs"]


def test_a_slow_run_is_stopped() -> None:
    assert compare.run(["sleep", "600"], {}, 0.1).problem == "over 0.1 s"


def test_a_run_without_enough_memory_says_so() -> None:
    many = "import sys; sys.exit('memory allocation of 9 bytes failed')"
    problem = compare.run([sys.executable, "-c", many], {}, 600).problem
    assert problem.startswith("needs over ")


@pytest.mark.slow
def test_pages_are_made_from_results(
    results: tuple[dict[str, Any], str, str], tmp_path: Path
) -> None:
    found = report.Results(results[0])
    for entry in [e for e in results[0]["rows"] if e["contestant"] == "tokenizers-0.23"]:
        found.entries.append({**entry, "contestant": "gigatoken"})  # which the plot compares with

    made = report.pages(found, ROOT)

    assert set(made) == {"docs/benchmarks.md", "README.md", "docs/benchmarks.svg"}
    assert "| English |" in made["docs/benchmarks.md"]
    assert "differs from tiktoken" in made["docs/benchmarks.md"]
    assert " MB (1 run) |" in made["docs/benchmarks.md"]
    assert "| train, English |" in made["README.md"]
    assert made["docs/benchmarks.svg"].count("<rect") >= 5
    assert not re.search(r"\bnan\b", "".join(made.values()))


def test_the_tree_has_the_pages_of_its_results() -> None:
    pages = {name: (ROOT / name).read_text("utf-8") for name in (report.PAGE, "README.md")}
    (results,) = (BENCHMARKS / "results").glob("*.json")  # the tree has one file of results
    pages[report.PLOT] = (ROOT / report.PLOT).read_text("utf-8")
    made = report.pages(report.Results(json.loads(results.read_text())), ROOT)
    assert pages == made, "run benchmarks/report.py"

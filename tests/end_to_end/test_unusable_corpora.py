"""A corpus that cannot be used is refused early; one that is damaged says what is lost."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from command_line import run, run_whole

JOBS = {
    "count": (),
    "train": ("--vocab-size", "300"),
}


def lines(field: str, count: int) -> bytes:
    return b"".join(
        json.dumps({"id": i, field: f"text {i} of some words"}).encode() + b"\n"
        for i in range(count)
    )


@pytest.mark.parametrize("job", JOBS)
def test_a_wrong_field_is_named_before_the_corpus_is_read(tmp_path: Path, job: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines("content", 20_000))
    arguments = (job, "--input", tmp_path / "a.jsonl", *JOBS[job], "--output", tmp_path / "out")
    ran = run(*arguments)
    assert ran.code == 1
    assert (
        " records, the first of 1 of the 1 files, all fail for one reason: field missing: "
        "text_field 'text' names no field; it has 'id', 'content'. The first is in a.jsonl at "
        'byte 0, which begins b\'{"id": 0, "content": '
    ) in ran.message
    assert not (tmp_path / "out").exists()
    assert run_whole(*arguments, "--text-field", "content").code == 0


def test_a_few_records_without_the_field_are_named_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines("content", 20))
    ran = run("count", "--input", tmp_path / "a.jsonl", "--output", tmp_path / "out")
    assert ran.code == 1
    assert "a.jsonl: 20 records, first at byte 0: field missing: text_field 'text' names" in (
        ran.message
    )
    assert "it has 'id', 'content'. All are listed" in ran.message


def test_two_damaged_files_of_twenty(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(20):
        data = gzip.compress(lines("text", 2000))
        if number in (3, 11):
            data = data[: len(data) // 3]
        (tmp_path / "in" / f"{number:02}.jsonl.gz").write_bytes(data)
    arguments = ("count", "--input", f"{tmp_path}/in/*", "--output", tmp_path / "out")
    ran = run(*arguments)
    assert ran.code == 1
    assert "are lost, in 2 damaged files: 03.jsonl.gz (" in (ran.message)
    assert "the gzip stream ends too soon" in ran.message
    assert not (tmp_path / "out" / "__manifest").exists()
    summary = run_whole(*arguments, "--max-lost", "1%").summary
    assert summary["lost"]["files"] == 2
    assert summary["lost"]["names"] == ["03.jsonl.gz", "11.jsonl.gz"]
    assert "are lost, in 2 damaged files" in summary["warnings"][0]
    manifest = json.loads((tmp_path / "out" / "__manifest").read_bytes())
    assert [row["file"] for row in manifest["lost"]] == ["03.jsonl.gz", "11.jsonl.gz"]
    assert run(*arguments).code == 1  # a finished folder knows its losses

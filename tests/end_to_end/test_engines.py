"""The local engine and Beam's own runner: the same bytes, counters and progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run, run_whole
from made_text import documents, write
from read_back import tree

HOW: dict[str, tuple[str, ...]] = {
    "one worker": ("--workers", "1"),
    "two workers": ("--workers", "2"),
    "Beam": ("--runner", "FnApiRunner", "--workers", "2"),
}
OWN_PATTERN = r"regex:\w+|[^\w\s]+|\s+"
TIMES = ("split_milliseconds", "_processor_microseconds")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with a reject, its counts, and a tokenizer whose pattern holds Python's lock."""
    folder = tmp_path_factory.mktemp("ground")
    corpus = write(folder / "a.jsonl", documents(300, seed=3))
    with corpus.open("ab") as file:
        file.write(b"{}\n")
    arguments = ("--input", corpus, "--max-rejects", "1", "--pretokenizer", OWN_PATTERN)
    run_whole("count", *arguments, "--output", folder / "counts")
    train = ("train", "--counts", folder / "counts", "--vocab-size", "300")
    run_whole(*train, "--output", folder / "tok")
    return folder


def arguments(job: str, ground: Path) -> tuple[str | Path, ...]:
    reading = ("--input", ground / "a.jsonl", "--range-bytes", "8KB", "--max-rejects", "1")
    rounds = ("--vocab-size", "400", "--merge-rounds", "distributed", "--driver-memory", "1MB")
    return {  # type: ignore[return-value]
        "count": ("count", *reading, "--tie-break", "first_seen"),
        "count in processes": ("count", *reading, "--pretokenizer", OWN_PATTERN),
        "tokenize": ("tokenize", *reading, "--tokenizer", ground / "tok" / "tokenizer.json"),
        "train": ("train", "--counts", ground / "counts", *rounds),
        "pieces": ("train", *reading, "--model", "mingram", *rounds),
    }[job]


def measured(summary: dict[str, Any]) -> dict[str, Any]:
    distributions = summary["distributions"] or {}
    kept = {name: row for name, row in distributions.items() if not name.endswith(TIMES)}
    return {"counters": summary["counters"], "distributions": kept}


def ends_of_stages(stderr: str) -> list[dict[str, Any]]:
    """The last line of each stage, without times."""
    rows = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    times = ("seconds", "bytes_per_second", "eta_seconds")
    return [
        {name: value for name, value in row.items() if name not in times}
        for row in rows
        if row.get("eta_seconds") == 0.0  # none while it is unknown, as on a loaded machine
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "job",
    [
        *("count", "count in processes", "tokenize", "train"),
        pytest.param("pieces", marks=pytest.mark.slow),
    ],
)
def test_the_engine_does_not_matter(job: str, ground: Path, tmp_path: Path) -> None:
    made, counted, shown = [], [], []
    for name, how in HOW.items():
        output = tmp_path / name
        more = ("--progress", "json", "--summary-file", tmp_path / "summary", *how)
        ran = run(*arguments(job, ground), "--output", output, *more)
        assert ran.code == 0, ran.err
        summary = json.loads((tmp_path / "summary").read_bytes())
        assert summary["runner"] == "in process"
        made.append(tree(output))
        counted.append(measured(summary))
        shown.append(ends_of_stages(ran.err))
    assert made[0] == made[1] == made[2]
    assert counted[0] == counted[1] == counted[2]
    assert counted[0]["counters"]
    assert shown[0] == shown[1] == shown[2]
    assert shown[0]

"""What is promised of the jobs' own pipelines: see `pipeline_checks.check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pipeline_checks
import pytest
import recording_runner
from command_line import run_whole
from made_text import write
from read_back import tree

STRICT = ("--type_check_strictness=ALL_REQUIRED", "--runtime_type_check")
RUNNER = ("--runner", "recording_runner.RecordingRunner")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Path:
    """Compressed, and so cut where it must be guessed whether the slices meet."""
    return write(tmp_path_factory.mktemp("corpus") / "a.jsonl.gz", texts)


@pytest.fixture(scope="module")
def tokenizer(corpus: Path) -> Path:
    out = corpus.parent / "tokenizer"
    run_whole("train", "--input", corpus, "--vocab-size", "400", "--output", out)
    return out / "tokenizer.json"


@pytest.mark.parametrize("job", ["count", "count by source", "tokenize"])
def test_labels_coders_and_types(job: str, corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    given: list[Any] = [job.split()[0], "--input", corpus, "--range-bytes", "1000"]
    given += {
        "count": ["--tie-break", "first_seen"],
        "count by source": ["--source", "a=a*"],
        "tokenize": ["--tokenizer", tokenizer],
    }[job]
    recording_runner.PIPELINES.clear()
    for output in ("one", "two"):
        run_whole(*given, "--output", tmp_path / output, *RUNNER, *STRICT)
    one, two = recording_runner.PIPELINES
    pipeline_checks.check(one)
    assert pipeline_checks.labels(one) == pipeline_checks.labels(two)
    run_whole(*given, "--output", tmp_path / "unchecked")
    assert tree(tmp_path / "one") == tree(tmp_path / "unchecked")

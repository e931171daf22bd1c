"""What is promised of the jobs' own pipelines: see `pipeline_checks.check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pipeline_checks
import pytest
import recording_runner
from command_line import run, run_whole
from made_text import write
from read_back import tree

from bpe_beam.jobs.corpus import job as corpus_job

STRICT = ("--type_check_strictness=ALL_REQUIRED", "--runtime_type_check")
RUNNER = ("--runner", "recording_runner.RecordingRunner")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Path:
    """Compressed, and so divided into speculative slices."""
    return write(tmp_path_factory.mktemp("corpus") / "a.jsonl.gz", texts)


@pytest.fixture(scope="module")
def tokenizer(corpus: Path) -> Path:
    out = corpus.parent / "tokenizer"
    run_whole("train", "--input", corpus, "--vocab-size", "400", "--output", out)
    return out / "tokenizer.json"


def options(job: str, corpus: Path, tokenizer: Path) -> list[Any]:
    arguments: list[Any] = [job.split()[0], "--input", corpus, "--range-bytes", "1000"]
    arguments += {
        "count": ["--tie-break", "first_seen"],
        "count by source": ["--source", "a=a*"],
        "tokenize": ["--tokenizer", tokenizer],
    }[job]
    return arguments


@pytest.mark.sampled(3)
@pytest.mark.parametrize("job", ["count", "count by source", "tokenize"])
def test_labels_coders_and_types(job: str, corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    arguments = options(job, corpus, tokenizer)
    recording_runner.PIPELINES.clear()
    for output in ("one", "two"):
        run_whole(*arguments, "--output", tmp_path / output, *RUNNER, *STRICT)
    one, two = recording_runner.PIPELINES
    pipeline_checks.check(one)
    assert pipeline_checks.labels(one) == pipeline_checks.labels(two)
    run_whole(*arguments, "--output", tmp_path / "unchecked")
    assert tree(tmp_path / "one") == tree(tmp_path / "unchecked")


@pytest.mark.slow
def test_labels_coders_and_types_of_rounds(corpus: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    run_whole("count", "--input", corpus, "--pretokenizer", "bert", "--output", counts)
    arguments = (
        "train",
        "--counts",
        counts,
        "--vocab-size",
        "400",
        "--merge-rounds",
        "distributed",
    )
    recording_runner.PIPELINES.clear()
    small = ("--driver-memory", "1MB", *RUNNER, *STRICT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bpe_beam.training.merges.words.BYTES_PER_TOKEN", 2000)
        run_whole(*arguments, "--output", tmp_path / "one", *small)
    seeing, *rounds = recording_runner.PIPELINES
    assert len(rounds) > 1
    for pipeline in (seeing, *rounds):
        pipeline_checks.check(pipeline)
        assert pipeline is seeing or pipeline_checks.labels(pipeline) == pipeline_checks.labels(
            rounds[0]
        )
    run_whole(*arguments[:-1], "local", "--output", tmp_path / "two")
    for name in ("tokenizer.json", "vocab.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("job", ["count", "count by source", "tokenize"])
def test_a_template_finishes_where_it_runs(
    job: str, corpus: Path, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher that only describes: here its pipeline runs at once, and nobody waits."""
    arguments = options(job, corpus, tokenizer)
    template = ("--template_location", tmp_path / "template", "--overwrite", *RUNNER, *STRICT)
    launched = []
    real = corpus_job.run_steps  # type: ignore[attr-defined]

    def counting(*args: Any, **more: Any) -> None:
        launched.append(args)
        real(*args, **more)

    monkeypatch.setattr(corpus_job, "run_steps", counting)
    ran = run_whole(*arguments, "--output", tmp_path / "one", *template)
    assert len(launched) == 1, "the last step took over what was made, and made nothing again"
    assert ran.summary["template"] == str(tmp_path / "template")
    assert "documents" not in ran.summary, "who describes a job knows nothing of its results"
    run_whole(*arguments, "--output", tmp_path / "two")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    pipeline_checks.check(recording_runner.PIPELINES[-1])


def test_what_cannot_be_a_template(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    template = ("--template_location", tmp_path / "template", *RUNNER)
    arguments = ("--input", corpus, "--vocab-size", "300", "--output", tmp_path / "out")
    ran = run("train", *arguments, *template)
    assert ran.code == 2
    assert "make a template of count" in ran.message
    arguments = ("--input", corpus, "--tokenizer", tokenizer, "--output", tmp_path / "out")
    ran = run("stream-tokenize", *arguments, *template)
    assert ran.code == 2
    assert "count and tokenize have one" in ran.message
    (tmp_path / "list").write_text(str(corpus))
    arguments = ("--input", f"@{tmp_path / 'list'}", "--output", tmp_path / "out")
    ran = run("count", *arguments, *template)
    assert ran.code == 2
    assert "must be lists at URLs" in ran.message

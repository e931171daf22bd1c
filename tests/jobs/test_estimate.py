"""`--dry-run`: amounts against those of the real jobs, and nothing written.

Seconds depend on the machine; `benchmarks/estimates.py` compares them. Here the jobs on a few
documents take made-up times.
"""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import run, run_whole
from made_text import documents, write

from bpe_beam.jobs import corpus_sample, estimate, trial
from bpe_beam.training.recipe import BpeRecipe, WordLevelRecipe

AMOUNTS = ("documents", "text_bytes", "words", "unique_words")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus whose documents become longer, and a tokenizer of it."""
    root = tmp_path_factory.mktemp("estimate")
    for number in range(4):
        write(root / "corpus" / f"{number}.jsonl", documents(400, number, words=10 + 20 * number))
    args = ("--input", root / "corpus", "--vocab-size", 400)
    run_whole("train", *args, "--output", root / "tok")
    return root


def estimated(made: Path, job: str, *args: object) -> Any:
    output = made / "never"
    ran = run(job, *args, "--output", output, "--dry-run", "--summary-file", "-")
    assert ran.code == 0, ran.err
    assert not output.exists()
    found = json.loads(ran.out)
    assert (found["job"], found["dry_run"]) == (job, True)
    assert found["next"] == ["the same without --dry-run"]
    assert found["memory_bytes"] > 10**7
    return found


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def truth(folder: Path, job: str, *args: object) -> Any:
    """Return the summary of the real job, and the size of its output, which is removed."""
    summary = run_whole(job, *args, "--output", folder).summary
    summary["storage_bytes"] = size_of(folder)
    shutil.rmtree(folder)
    return summary


def sources(made: Path) -> list[object]:
    pairs = ((f"s{number}", f"*{number}.jsonl") for number in range(4))
    return [part for name, glob in pairs for part in ("--source", f"{name}={glob}")]


@pytest.mark.parametrize("by_source", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_count(made: Path, tmp_path: Path, workers: int, by_source: bool) -> None:
    """A corpus that the sample has whole."""
    args: list[object] = ["--input", made / "corpus", "--workers", workers]
    args += sources(made) if by_source else []
    found = estimated(made, "count", *args)
    real = truth(tmp_path / "counts", "count", *args)
    assert found["bytes"] == found["sampled_bytes"] == size_of(made / "corpus")
    for name in AMOUNTS:
        assert found[name] == real[name], name
    assert found["rejects"] == 0
    assert found["files"] == 4
    assert found["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.02)


def test_train_from_a_corpus_and_from_counts(made: Path, tmp_path: Path) -> None:
    size = ("--vocab-size", 400)
    sized = [*sources(made), *size, "--temperature", 0.5]
    corpus = estimated(made, "train", "--input", made / "corpus", *sized)
    real = truth(tmp_path / "corpus", "train", "--input", made / "corpus", *sized)
    assert corpus["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.02)
    counts = estimated(made, "train", "--counts", made / "tok" / "counts", *size)
    real = truth(tmp_path / "counts", "train", "--counts", made / "tok" / "counts", *size)
    assert counts["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.02)
    assert corpus["unique_words"] == counts["unique_words"] == real["unique_words"]
    assert corpus["merge_rounds"] == counts["merge_rounds"] == "local"
    assert "bytes" not in counts


def test_train_from_some_parts(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training on less than all words tells the size of the files too."""
    args = ("--counts", made / "tok" / "counts", "--vocab-size", 1000)
    real = truth(tmp_path / "counts", "train", *args)
    tried = []

    def try_job(*job: Any, output: str) -> Any:
        tried.append(job[2])
        return original(*job, output=output)

    original = trial.try_job
    monkeypatch.setattr(estimate, "try_job", try_job)
    whole = estimate._work(BpeRecipe(1000), real["unique_words"] * 8)
    monkeypatch.setattr(estimate, "_LEARNING_SECONDS", 0.8 * whole)
    found = estimated(made, "train", *args)
    assert 1 < tried[0] < 32
    assert found["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.2)


def test_train_in_rounds(made: Path) -> None:
    args = ("--counts", made / "tok" / "counts", "--vocab-size", 400)
    for rounds in (("--driver-memory", "1MB"), ("--merge-rounds", "distributed")):
        found = estimated(made, "train", *args, *rounds)
        assert found["merge_rounds"] == "distributed"
        assert found["seconds"] is None
        assert found["storage_bytes"] > 10_000


@pytest.mark.parametrize("formats", [("megatron",), ("megatron", "parquet")])
def test_tokenize(made: Path, tmp_path: Path, formats: tuple[str, ...]) -> None:
    args = ("--input", made / "corpus", "--tokenizer", made / "tok", "--workers", 1)
    chosen = [part for name in formats for part in ("--format", name)]
    found = estimated(made, "tokenize", *args, *chosen)
    real = truth(tmp_path / "tokens", "tokenize", *args, *chosen)
    for name in ("documents", "text_bytes", "tokens"):
        assert found[name] == real[name], name
    assert found["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.02)


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample's clock, by which the time is over when about half of the corpus is read."""
    ticks = itertools.count()
    monkeypatch.setattr(corpus_sample, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    monkeypatch.setattr(estimate, "SAMPLE_SECONDS", 11)


@pytest.mark.parametrize("by_source", [False, True])
def test_count_of_a_part_of_the_corpus(
    made: Path, tmp_path: Path, ticking: None, by_source: bool
) -> None:
    args: list[object] = ["--input", made / "corpus", "--workers", 1, "--range-bytes", "16KB"]
    args += sources(made) if by_source else []
    found = estimated(made, "count", *args)
    real = truth(tmp_path / "counts", "count", *args)
    assert 0.3 * found["bytes"] < found["sampled_bytes"] < 0.7 * found["bytes"]
    for name in (*AMOUNTS, "storage_bytes"):
        assert found[name] == pytest.approx(real[name], rel=0.2), name


def test_tokenize_a_part_of_the_corpus(made: Path, tmp_path: Path, ticking: None) -> None:
    args: list[object] = ["--input", made / "corpus", "--tokenizer", made / "tok"]
    args += ["--workers", 1, "--range-bytes", "16KB", "--format", "parquet"]
    found = estimated(made, "tokenize", *args)
    real = truth(tmp_path / "tokens", "tokenize", *args)
    assert found["sampled_bytes"] < 0.7 * found["bytes"]
    for name in ("documents", "text_bytes", "tokens", "storage_bytes"):
        assert found[name] == pytest.approx(real[name], rel=0.2), name


def test_seconds_have_what_every_run_takes(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job on a few documents takes 100 s, of which starting the process takes 40 s."""

    def slow(*args: Any, output: str) -> Any:
        stages = {"learn": 50.0}
        return original(*args, output=output)._replace(seconds=100.0, start=40.0, stages=stages)

    original = trial.try_job
    monkeypatch.setattr(estimate, "try_job", slow)
    corpus = ("--input", made / "corpus")
    assert 100 <= estimated(made, "count", *corpus)["seconds"] < 120
    tokenizing = ("--tokenizer", made / "tok")
    assert 100 <= estimated(made, "tokenize", *corpus, *tokenizing)["seconds"] < 120
    counts = ("--counts", made / "tok" / "counts")
    assert estimated(made, "train", *counts, "--vocab-size", 400)["seconds"] == 100
    # One process counts and trains.
    assert 160 <= estimated(made, "train", *corpus, "--vocab-size", 400)["seconds"] < 180


def test_memory_is_that_of_the_trial_and_of_the_words(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job on a few documents takes 1 GB, of which 0.4 GB are there before it begins."""

    def large(*args: Any, output: str) -> Any:
        memory = {"memory": 10**9, "memory_before": 4 * 10**8}
        return original(*args, output=output)._replace(**memory)

    original = trial.try_job
    monkeypatch.setattr(estimate, "try_job", large)
    corpus = ("--input", made / "corpus", "--workers", 1)
    assert 10**9 < estimated(made, "count", *corpus)["memory_bytes"] < 1.02 * 10**9
    tokenizing = ("--tokenizer", made / "tok")
    assert 10**9 <= estimated(made, "tokenize", *corpus, *tokenizing)["memory_bytes"] < 1.07 * 10**9
    counts = ("--counts", made / "tok" / "counts", "--vocab-size", 400)
    assert estimated(made, "train", *counts)["memory_bytes"] == 10**9
    # Merges in rounds take what the driver may have.
    rounds = (*counts, "--driver-memory", "1MB")
    assert estimated(made, "train", *rounds)["memory_bytes"] == 4 * 10**8 + 10**6


def test_seconds_of_a_part_of_the_words(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*args: Any, output: str) -> Any:
        stages = {"learn": 50.0}
        return original(*args, output=output)._replace(seconds=100.0, stages=stages)

    original = trial.try_job
    monkeypatch.setattr(estimate, "try_job", slow)
    monkeypatch.setattr(estimate, "_LEARNING_SECONDS", 0.0)
    monkeypatch.setattr(estimate, "_more_work", lambda *_: 7.0)
    counts = ("--counts", made / "tok" / "counts", "--vocab-size", 400)
    assert estimated(made, "train", *counts)["seconds"] == 50 + 7 * 50


def test_training_takes_time_for_its_merges_too() -> None:
    """A training on a thirtieth of the words has as many merges, and is not thirty times faster."""
    more = estimate._more_work(BpeRecipe(32_000), 2_700_000, 1 / 32)
    assert 3 < more < 8
    assert 25 < estimate._more_work(BpeRecipe(32_000), 2_700_000_000, 1 / 32) < 90
    assert estimate._more_work(WordLevelRecipe(32_000), 2_700_000, 1 / 32) == 32
    assert estimate._more_work(BpeRecipe(32_000), 2_700_000, 1.0) == 1


def test_a_corpus_without_documents(tmp_path: Path) -> None:
    """The job fails; the estimate does not."""
    (tmp_path / "empty.jsonl").write_text("no json\n")
    found = estimated(tmp_path, "count", "--input", tmp_path / "empty.jsonl")
    assert (found["documents"], found["rejects"]) == (0, 1)

"""`--dry-run`: amounts against those of the real jobs, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run, run_whole
from made_text import documents, write

from bpe_beam.corpus.readers import read_split
from bpe_beam.jobs import estimate
from bpe_beam.training.recipe import BpeRecipe, WordLevelRecipe


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, and what the jobs make of it."""
    root = tmp_path_factory.mktemp("estimate")
    for number in range(4):
        write(root / "corpus" / f"{number}.jsonl", documents(300, seed=number))
    run_whole("count", "--input", root / "corpus", "--output", root / "counts")
    counts = ("--counts", root / "counts", "--vocab-size", 400)
    run_whole("train", *counts, "--output", root / "tok")
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
    assert 0 <= found["seconds"] < 600
    return found


@pytest.mark.parametrize("workers", [1, 2])
def test_count(made: Path, workers: int) -> None:
    """A corpus that the sample has whole."""
    found = estimated(made, "count", "--input", made / "corpus", "--workers", workers)
    manifest = json.loads((made / "counts" / "manifest.json").read_bytes())
    assert found["bytes"] == found["sampled_bytes"] == sum(n for _, n in manifest["inputs"])
    for name in ("documents", "text_bytes", "words", "unique_words"):
        assert found[name] == manifest[name], name
    assert found["rejects"] == 0
    assert found["files"] == 4
    assert found["storage_bytes"] > 0


def test_train_from_a_corpus_and_from_counts(made: Path) -> None:
    size = ("--vocab-size", 400)
    corpus = estimated(made, "train", "--input", made / "corpus", *size)
    counts = estimated(made, "train", "--counts", made / "counts", *size)
    assert corpus["unique_words"] == counts["unique_words"]
    assert corpus["merge_rounds"] == counts["merge_rounds"] == "local"
    assert "bytes" not in counts
    written = sum(path.stat().st_size for path in (made / "tok").glob("*.json"))
    assert counts["storage_bytes"] == pytest.approx(written, rel=1.0)


def test_train_in_rounds(made: Path) -> None:
    args = ("--counts", made / "counts", "--vocab-size", 400, "--driver-memory", "1MB")
    ran = run("train", *args, "--output", made / "never", "--dry-run", "--summary-file", "-")
    found = json.loads(ran.out)
    assert found["merge_rounds"] == "distributed"
    assert found["seconds"] is None


@pytest.mark.parametrize("formats", [("megatron",), ("megatron", "parquet")])
def test_tokenize(made: Path, tmp_path: Path, formats: tuple[str, ...]) -> None:
    args = ("--input", made / "corpus", "--tokenizer", made / "tok", "--workers", 1)
    chosen = [part for name in formats for part in ("--format", name)]
    found = estimated(made, "tokenize", *args, *chosen)
    real = run_whole("tokenize", *args, *chosen, "--output", tmp_path / "tokens").summary
    for name in ("documents", "text_bytes", "tokens"):
        assert found[name] == real[name], name
    shards = sum(path.stat().st_size for path in tmp_path.rglob("shard-*"))
    assert found["storage_bytes"] == pytest.approx(shards, rel=0.05)


def test_a_part_of_the_corpus(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Amounts of the whole follow from those of a part of each split."""
    monkeypatch.setattr(estimate, "_SPLIT_BYTES", 1)
    monkeypatch.setattr(estimate, "read_split", with_small_batches(read_split))
    found = estimated(made, "count", "--input", made / "corpus", "--range-bytes", "20KB")
    manifest = json.loads((made / "counts" / "manifest.json").read_bytes())
    assert found["sampled_bytes"] < 0.8 * found["bytes"]
    for name in ("documents", "text_bytes", "words", "unique_words"):
        assert found[name] == pytest.approx(manifest[name], rel=0.35), name


def with_small_batches(read: Any) -> Any:
    """Return a reader of splits whose batches are small."""
    return lambda *args, **more: read(*args, **more, batch_bytes=2000)


def test_training_takes_time_for_its_merges_too() -> None:
    """A training on a thirtieth of the words has as many merges, and is not thirty times faster."""
    more = estimate._more_work(BpeRecipe(32_000), 2_700_000, 1 / 32)
    assert 3 < more < 8
    assert 25 < estimate._more_work(BpeRecipe(32_000), 2_700_000_000, 1 / 32) < 90
    assert estimate._more_work(WordLevelRecipe(32_000), 2_700_000, 1 / 32) == 32
    assert estimate._more_work(BpeRecipe(32_000), 2_700_000, 1.0) == 1

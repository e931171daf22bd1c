"""Training of pieces on workers that is killed at any moment ends with the bytes of local training.

The moments are between two commits of merge rounds or of passes, some milliseconds after the first.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from command_line import COMMAND, run_whole
from killed_jobs import kill_between
from made_text import documents, write
from read_back import tree

KILLS = 5


@pytest.mark.slow
@pytest.mark.parametrize("model", ["unigram", "mingram"])
def test_killed_in_passes(model: str, tmp_path: Path) -> None:
    corpus, counts = write(tmp_path / "a.jsonl", documents(1000, seed=9)), tmp_path / "counts"
    run_whole("count", "--input", corpus, "--output", counts, "--normalizer", "dummy_prefix",
              "--pretokenizer", "metaspace")  # fmt: skip
    command = ("train", "--counts", str(counts), "--model", model, "--vocab-size", "600")
    local = run_whole(*command, "--output", tmp_path / "local").summary
    out, rng = tmp_path / "out", random.Random(model)
    command += ("--merge-rounds", "distributed", "--output", str(out))
    commits = len(local["pieces_by_pass"])
    for kill in range(KILLS):
        moment = 1 + kill * (commits - 1) // KILLS

        def reached(moment: int = moment) -> bool:
            passed = out.glob("rounds/passes/commit-*.json")
            return any(int(path.name[7:12]) >= moment for path in passed)

        kill_between(
            *((*COMMAND, *command, "--quiet"), out, reached),
            *((out / "summary.json").exists, f"commit {moment}", rng.random() * 0.03),
        )
        assert [*out.glob("rounds/passes/commit-*.json")]
    summary = run_whole(*command).summary
    assert tree(out) == tree(tmp_path / "local")
    assert summary["pieces_by_pass"] == local["pieces_by_pass"]
    assert summary["jobs"] <= commits - moment + 1

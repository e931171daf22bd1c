"""`tokenize` killed in the middle and started again: in any format, the bytes of an unbroken run.

The middle is known by what the job has finished: a share of its tasks, drawn from a seed, and a few
milliseconds more, so that some kills fall into the writing of a file.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import COMMAND, run_whole
from killed_jobs import kill_between
from made_text import documents, write
from read_back import tree

from bpe_beam.shards.formats import SHARD_FORMATS

pytestmark = pytest.mark.slow

END = "<|endoftext|>"
SPLITS = 60
ARRANGED = (
    *("--sequence-length", "32", "--packing", "best_fit", "--shuffle-seed", "9"),
    *("--shard-tokens", "250"),
)
"""Sequences in a seeded order, in about as many shards as there are splits."""


@dataclass
class Ground:
    """A corpus of many small splits and its tokenizer."""

    folder: Path

    def command(self, format_name: str, out: Path) -> tuple[str, ...]:
        corpus = self.folder / "a.jsonl"
        range_bytes = -(-corpus.stat().st_size // SPLITS)
        reading = ("--input", str(corpus), "--range-bytes", str(range_bytes))
        tokenizer = ("--tokenizer", str(self.folder / "tok" / "tokenizer.json"), "--prepend", END)
        return ("tokenize", *reading, *tokenizer, "--format", format_name, "--output", str(out))


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("ground")
    corpus = write(folder / "a.jsonl", ["", *documents(SPLITS * 6, seed=9), ""])
    given = ("--input", corpus, "--vocab-size", "400", "--special-token", END)
    run_whole("train", *given, "--output", folder / "tok")
    return Ground(folder)


def finished(out: Path, task: str) -> int:
    """Return how many tasks of a kind have a receipt, of this run or of one before it."""
    work = out / "work"
    with contextlib.suppress(FileNotFoundError):  # a folder was removed meanwhile
        paths = [*work.glob(f"{task}-*.json"), *work.glob(f"run-*/work/{task}-*.json")]
        return len({path.name for path in paths})
    return 0


def kill(command: Sequence[str], out: Path, task: str, made: random.Random) -> int:
    """Kill a job in the middle of its tasks of a kind; return how many of them are finished."""
    least = made.randint(SPLITS // 10, SPLITS // 2)
    kill_between(
        [*COMMAND, *command, "--quiet", "--workers", "2"],
        Path(command[command.index("--output") + 1]),
        lambda: finished(out, task) >= least,
        lambda: (out / "__manifest").exists() or finished(out, task) >= SPLITS,
        f"the receipts of {least} tasks of {task}",
        made.random() * 0.01,
    )
    return finished(out, task)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format_name", SHARD_FORMATS)
def test_documents(ground: Ground, tmp_path: Path, format_name: str) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    run_whole(*ground.command(format_name, whole))
    command = ground.command(format_name, out)
    done = kill(command, out, "shard", random.Random(f"documents {format_name}"))
    summary = run_whole(*command).summary
    assert done <= summary["shards_kept_from_before"] < SPLITS
    assert tree(out) == tree(whole)
    assert run_whole("verify", out).summary["whole"] is True


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format_name", SHARD_FORMATS)
def test_packed_and_shuffled(ground: Ground, tmp_path: Path, format_name: str) -> None:
    """Killed twice: while documents are tokenized, and while shards of sequences are written."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    run_whole(*ground.command(format_name, whole), *ARRANGED)
    command = (*ground.command(format_name, out), *ARRANGED)
    made = random.Random(f"sequences {format_name}")
    kill(command, out / "work" / "documents", "shard", made)
    done = kill(command, out, "shard", made)
    summary = run_whole(*command).summary
    assert summary["shards_kept_from_before"] == done
    assert tree(out) == tree(whole)
    assert run_whole("verify", out).summary["whole"] is True

"""The folder of merge rounds: what a job that was killed, or refused, leaves of it."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pytest
from command_line import run, run_whole
from damage import all_edits
from made_text import documents, write
from rounds_by_hand import STORAGE, counts_folder

from bpe_beam.jobs.train.commits import Commit, RoundsFolder, remove_rounds

pytestmark = pytest.mark.quick

ATTEMPT = ".attempt-0123456789ab"
NAMES = (
    *("round.json", "seen/seen-00000-of-00003.json", "state/words-00006-of-00007.arrow"),
    *("work/pairs-00006-of-00007.blocks", "work/segments-00000-of-00007.blocks"),
    *("pairs/hot-00000-of-00007.arrow", "pairs/best-00000-of-00007.arrow"),
    "segments/segments-00000-of-00007.arrow",
)
LEFT = (
    *("commit-00003.json", "start.json", f"commit-00004.json{ATTEMPT}", f"start.json{ATTEMPT}"),
    *(f"work/run-0123456789ab/{name}" for name in NAMES),
    *(f"work/run-0123456789ab/{name}{ATTEMPT}" for name in NAMES),
    *(f"work/run-0123456789ab/work/{name}-00002-of-00007.json" for name in ("words", "cut")),
    f"work/run-0123456789ab/work/seen-00002-of-00007.json{ATTEMPT}",
)
"""Files of a run over other counts, killed in the middle of its writes."""


def leave(rounds: Path) -> Path:
    """Puts there what was left."""
    for name in LEFT:
        path = rounds / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left")
    return rounds


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write(tmp_path / "a.jsonl", documents(20, seed=1))


def test_everything_that_rounds_of_any_counts_left_goes(tmp_path: Path) -> None:
    rounds = leave(tmp_path / "rounds")
    remove_rounds(STORAGE, str(rounds))
    assert not rounds.exists()


def test_what_others_put_there_stays(tmp_path: Path) -> None:
    rounds = leave(tmp_path / "rounds")
    others = [
        "commit-1.json",
        "mine.txt",
        "work/notes.json",
        "work/run-0/a",
        "work/run-0123456789ab/state/mine.arrow",
        "work/run-0123456789ab/work/mine.json",
    ]
    for name in others:
        (rounds / name).parent.mkdir(exist_ok=True)
        (rounds / name).write_text("mine")
    remove_rounds(STORAGE, str(rounds))
    found = [path for path in rounds.rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(rounds)) for path in found) == sorted(others)


@pytest.mark.parametrize("mode", ["local", "distributed"])
def test_a_job_ends_without_them(mode: str, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("train", "--input", corpus, "--vocab-size", "280", "--merge-rounds", mode)
    leave(out / "rounds")
    run_whole(*arguments, "--output", out)
    assert not (out / "rounds").exists()


def test_a_job_that_was_killed_at_its_very_end(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("train", "--input", corpus, "--vocab-size", "280", "--output", out)
    run_whole(*arguments)
    leave(out / "rounds")
    assert run_whole(*arguments).summary["was_finished_before"] is True
    assert not (out / "rounds").exists()


def test_a_job_that_is_refused_keeps_no_words(tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = random.Random(1)
    words = {"".join(made.choices("abcdefgh", k=9)): 2 for _ in range(5000)}
    counts = counts_folder(tmp_path / "counts", words, "bert")
    arguments = ("train", "--counts", counts, "--model", "wordpiece", "--vocab-size", "200")
    ran = run(
        *arguments, "--merge-rounds", "distributed", "--driver-memory", "1MB", "--output", out
    )
    assert (ran.code, "--driver-memory must be about" in ran.message) == (2, True), ran.err
    assert not out.exists()


def test_a_commit_that_was_edited_is_none(tmp_path: Path) -> None:
    folder = RoundsFolder(STORAGE, str(tmp_path / "rounds"), {"vocab_size": 300})
    folder.latest()
    STORAGE.write_bytes(folder.start, b"{}")
    commit = Commit(
        number=1,
        run="run-0123456789ab",
        word_batches=[],
        rows=[(1, 2, 300), (3, 4, 301)],
        counts=[9, 5],
        known=300,
        applied=1,
        floor=2,
        divisor=3,
        done=False,
        history=[{"round": 1, "merges": 2}],
        start=hashlib.sha256(b"{}").hexdigest(),
    )
    folder.commit(commit)
    path = tmp_path / "rounds" / "commit-00001.json"
    whole = path.read_bytes()
    assert folder.latest() == commit
    edits = list(all_edits(whole, 8, lambda value: json.dumps(value).encode()))
    assert len(edits) > 60
    for name, data in edits:
        path.write_bytes(data)
        assert folder.latest() is None, name

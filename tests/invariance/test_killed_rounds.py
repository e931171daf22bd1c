"""Distributed training that is killed at any moment ends with the bytes of local training.

Moments are chosen by what the job has committed, and in a round by the receipts of its word
batches, never by the clock.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND, run_whole
from killed_jobs import kill_between, kill_by_the_clock, kill_when, started
from made_text import documents, write
from read_back import tree
from waiting import SECONDS

from bpe_beam.cli import main as cli
from bpe_beam.jobs.train.commits import Commit, RoundsFolder
from bpe_beam.storage import Storage

ENGINES: tuple[tuple[str, ...], ...] = ((), ("--runner", "FnApiRunner"))
"""The local one and Beam's own, in turn; the last run is on the local one."""
RECEIPTS = 4
"""Of a round over one piece: its words, its pairs, its cut, its segments."""


@dataclass
class Counted:
    """A counts folder, and what is learned of it without rounds."""

    folder: Path
    expected: dict[str, bytes] = field(default_factory=dict)

    @property
    def command(self) -> tuple[str, ...]:
        """The job in rounds, but for its output."""
        learning = ("--vocab-size", "1200", "--merge-rounds", "distributed")
        return ("train", "--counts", str(self.folder), *learning, "--driver-memory", "1MB")


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    """Words of which so little memory makes some rounds."""
    folder = tmp_path_factory.mktemp("counted")
    corpus = write(folder / "a.jsonl", documents(3000, seed=9))
    run_whole("count", "--input", corpus, "--output", folder / "counts")
    arguments = ("train", "--counts", folder / "counts", "--vocab-size", "1200")
    run_whole(*arguments, "--merge-rounds", "local", "--output", folder / "local")
    return Counted(folder / "counts", tree(folder / "local"))


class Runs:
    """One job's folder over several runs.

    Attributes:
        history: The rounds that were committed before the last kill.
    """

    def __init__(self, counted: Counted, out: Path) -> None:
        self.counted = counted
        self.out = out
        self.history: list[dict[str, Any]] = []

    @property
    def command(self) -> tuple[str, ...]:
        """The job with its output."""
        return (*COMMAND, *self.counted.command, "--output", str(self.out), "--quiet")

    def kill(self, moment: str | float, delay: float, *more: str) -> bool:
        """Starts the job and kills it.

        Args:
            moment: How many rounds are committed, and which share of the next is done; `learned`:
                the last is committed; or a file in the output that is there.
            delay: Seconds to wait from then on.
            *more: More options of the job.

        Returns:
            Whether it was killed before it ended.
        """
        command, what = [*self.command, *more], f"{moment}"
        killed = True
        if isinstance(moment, str):
            killed = kill_when(command, lambda: self._reached(moment), what, delay)
        else:
            kill_between(
                *(command, self.out, lambda: self._reached(moment)),
                *((self.out / "summary.json").exists, what, delay),
            )
        self._look()
        return killed

    def _reached(self, moment: str | float) -> bool:
        if isinstance(moment, str) and moment != "learned":
            return (self.out / moment).exists()
        if (self.out / "summary.json").exists():
            return True
        if moment == "learned":
            return bool((self._commit() or {}).get("done"))
        with contextlib.suppress(FileNotFoundError):  # what is looked at may go meanwhile
            commits = [int(p.name[7:12]) for p in self.out.glob("rounds/commit-*.json")]
            runs = self.out.glob("rounds/work/run-*")
            # Those of the committed one are all there.
            done = min((len([*run.glob("work/*.json")]) for run in runs), default=0) / RECEIPTS
            return max(commits, default=0) + min(done, 0.99) >= float(moment)
        return False

    def _commit(self) -> dict[str, Any] | None:
        with contextlib.suppress(FileNotFoundError, ValueError):
            # Two, if it was killed before it removed the older one.
            name = max(self.out.glob("rounds/commit-*.json"))
            found: dict[str, Any] = json.loads(name.read_bytes())["commit"]
            return found
        return None

    def _look(self) -> None:
        """Committed files are kept, and were not made again."""
        commit = self._commit()
        if commit is not None:
            assert commit["history"][: len(self.history)] == self.history
            self.history = commit["history"]

    def end(self) -> dict[str, Any]:
        """Runs it to its end; what it leaves must be right, and its rounds those that were
        committed before and no others again."""
        summary = run_whole(*self.counted.command, "--output", self.out).summary
        assert tree(self.out) == self.counted.expected
        again = summary.get("was_finished_before")
        if not again:
            # With their times: none was run a second time.
            assert summary["rounds"][: len(self.history)] == self.history
            assert summary["jobs"] == len(summary["rounds"]) - len(self.history)
        return summary


def disturb(counted: Counted, out: Path, moments: list[str | float], seed: int) -> Runs:
    """Kills the job at each moment, starts it again each time, and looks at what it ends with."""
    made = random.Random(seed)
    runs = Runs(counted, out)
    killed = [
        runs.kill(moment, made.random() * 0.03, *engine)
        for moment, engine in zip(moments, cycle(ENGINES), strict=False)
    ]
    assert sum(killed) >= len(moments) - 1
    assert runs.history
    rounds = runs.end()["rounds"]
    assert len(rounds) >= 8
    assert [row["round"] for row in rounds] == [*range(1, len(rounds) + 1)]
    return runs


@pytest.mark.slow
def test_killed_three_times(counted: Counted, tmp_path: Path) -> None:
    made = random.Random("three times")
    disturb(counted, tmp_path / "out", [made.uniform(i, i + 2) for i in (0, 3, 6)], seed=1)


@pytest.mark.slow
def test_killed_twenty_times(counted: Counted, tmp_path: Path) -> None:
    """Seventeen times in a round, thrice after the last."""
    made = random.Random("twenty times")
    shares: list[str | float] = [(i + made.random()) / 2 for i in range(17)]
    ends = ["learned", "tokenizer.json", "summary.json"]
    runs = Runs(counted, tmp_path / "out")
    killed = [runs.kill(moment, made.random() * 0.03) for moment in shares]
    # From here on the job is over in a few milliseconds.
    killed += [runs.kill(moment, 0) for moment in ends]
    assert sum(killed) >= 17
    runs.end()
    assert len(runs.history) >= 8


@pytest.mark.scheduled
def test_killed_by_the_clock(counted: Counted, tmp_path: Path) -> None:
    """Each time another folder, at a time within the job's measured duration."""
    for out in kill_by_the_clock(lambda out: Runs(counted, out).command, tmp_path, seed="clock"):
        runs = Runs(counted, out)
        runs._look()
        runs.end()


class Killed(BaseException):
    """Nothing of ours catches it."""


CHANGES = ("write_bytes", "remove", "remove_folder_if_empty", "make_folder")


def last_change(patch: pytest.MonkeyPatch, count: int) -> None:
    """Lets so many changes of storage through; the next one is never made."""
    left = [count]

    def counting(change: Callable[..., None]) -> Callable[..., None]:
        def changed(*args: Any) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            change(*args)

        return changed

    for name in CHANGES:
        patch.setattr(Storage, name, counting(getattr(Storage, name)))


def train_here(counted: Counted, out: Path) -> int:
    return cli.main([*counted.command, "--output", str(out), "--quiet"])


def test_killed_between_the_last_commit_and_the_end(counted: Counted, tmp_path: Path) -> None:
    learned = tmp_path / "learned"
    commit = RoundsFolder.commit

    def killed_when_done(folder: RoundsFolder, made: Commit) -> None:
        commit(folder, made)
        if made.done:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RoundsFolder, "commit", killed_when_done)
        with pytest.raises(Killed):
            train_here(counted, learned)
    ends = set()
    for step in range(0, 500, 5):
        out = shutil.copytree(learned, tmp_path / f"out{step}")
        with pytest.MonkeyPatch.context() as patch:
            last_change(patch, step)
            try:
                assert train_here(counted, out) == 0
                break
            except Killed:
                pass
        ends.add((out / "summary.json").exists())
        assert train_here(counted, out) == 0
        assert tree(out) == counted.expected
    assert ends == {False, True}


def test_two_jobs_on_one_folder(counted: Counted, tmp_path: Path) -> None:
    runs = Runs(counted, tmp_path / "out")
    with started(runs.command) as one, started(runs.command) as other:
        ended = [process.communicate(timeout=SECONDS) for process in (one, other)]
        for process, (_, err) in zip((one, other), ended, strict=True):
            if process.returncode == 0:
                tokenizer = (runs.out / "tokenizer.json").read_bytes()
                assert tokenizer == counted.expected["tokenizer.json"]
            else:
                assert process.returncode == 1, err.decode()
                assert err.startswith(b"bpe-beam train: "), err.decode()
                assert err.count(b"\n") == 1, err.decode()
    runs.end()

"""A job that is killed at any moment and started again ends with the bytes of an undisturbed one,
whichever engine each run is on.

Moments are chosen by what the job has finished, not by the clock: a share of its outputs, drawn
from a seed and spread over the whole of it, and a few milliseconds more. So they fall where they
should on a machine of any speed and load.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest
from command_line import COMMAND, run_whole
from killed_jobs import kill_between, kill_by_the_clock, kill_when
from made_text import documents, write
from read_back import tree

END = "<|endoftext|>"
PARTS = 32
ENGINES: tuple[tuple[str, ...], ...] = ((), ("--runner", "FnApiRunner"))
"""The local one and Beam's own, in turn; the last run is on the local one."""


@dataclass
class Corpus:
    """A corpus of many small splits, a tokenizer, and what each job makes of it undisturbed."""

    folder: Path
    splits: int
    whole: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def command(self, job: str) -> tuple[str, ...]:
        """The job, but for its output."""
        size = self.folder / "a.jsonl"
        range_bytes = -(-size.stat().st_size // self.splits)
        reading = ("--input", str(size), "--range-bytes", str(range_bytes))
        tokenizer = ("--tokenizer", str(self.folder / "tok" / "tokenizer.json"), "--append", END)
        more = {
            "count": ("--tie-break", "first_seen"),
            "train": ("--vocab-size", "1200", "--special-token", END),
            "tokenize": tokenizer,
        }
        return (job, *reading, *more[job])

    def undisturbed(self, job: str) -> dict[str, bytes]:
        """What the job's folder holds if nobody kills it."""
        if job not in self.whole:
            out = self.folder / job
            run_whole(*self.command(job), "--output", out)
            self.whole[job] = tree(out)
        return self.whole[job]


def make_corpus(folder: Path, splits: int) -> Corpus:
    corpus = write(folder / "a.jsonl", documents(splits * 6, seed=9))
    arguments = ("--input", corpus, "--vocab-size", "500", "--special-token", END)
    run_whole("train", *arguments, "--output", folder / "tok")
    return Corpus(folder, splits)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """For the default run."""
    return make_corpus(tmp_path_factory.mktemp("corpus"), 120)


@pytest.fixture(scope="module")
def long_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """For the long run."""
    return make_corpus(tmp_path_factory.mktemp("long"), 300)


class Runs:
    """One job's folder over several runs.

    Attributes:
        kept: Finished files that stood through a kill and the run after it, as they were.
    """

    def __init__(self, corpus: Corpus, job: str, out: Path) -> None:
        self.command = (*COMMAND, *corpus.command(job), "--output", str(out), "--quiet")
        self.out = out
        counts = out / "counts" if job == "train" else out
        self.work = counts / "work"
        self.pieces = corpus.splits + (0 if job == "tokenize" else PARTS)
        self.last = counts / "__manifest"
        self.kept: set[str] = set()
        self._stamps: dict[str, tuple[int, int]] = {}

    def kill(self, moment: str | float, delay: float, *more: str) -> bool:
        """Starts the job and kills it.

        Args:
            moment: `begun`: its folder is there; `counted`, `ended`: a manifest is; or a share of
                its pieces.
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
                *(command, self.out, lambda: self._reached(moment), self.last.exists, what, delay)
            )
        self._look()
        return killed

    def _reached(self, moment: str | float) -> bool:
        if moment == "begun":
            return self.out.exists()
        if moment == "ended":
            return self.last.exists()
        assert isinstance(moment, float)
        return self.last.exists() or self._finished() >= moment * self.pieces

    def _finished(self) -> int:
        """Pieces that this run and those before it have finished."""
        with contextlib.suppress(FileNotFoundError):  # a folder went while it was looked at
            paths = [*self.work.glob("*.json"), *self.work.glob("run-*/work/*.json")]
            return len({path.name for path in paths})
        return 0

    def _look(self) -> None:
        """Compares the files that stand now with those that stood at the last kill."""
        stamps = {}
        for path in self.out.rglob("*"):
            if path.suffix in (".bin", ".idx", ".words", ".parquet"):
                stat = path.stat()
                stamps[path.name] = (stat.st_ino, stat.st_mtime_ns)
        for name in stamps.keys() & self._stamps.keys():
            if stamps[name] == self._stamps[name]:
                self.kept.add(name)
        self._stamps = stamps


def disturb(corpus: Corpus, job: str, out: Path, moments: list[str | float], seed: int) -> None:
    """Kills a job at each moment, starts it again each time, and compares what it ends with."""
    made = random.Random(seed)
    expected = corpus.undisturbed(job)
    runs = Runs(corpus, job, out)
    killed = [
        runs.kill(moment, made.random() * 0.03, *engine)
        for moment, engine in zip(moments, cycle(ENGINES), strict=False)
    ]
    # The last moments can be over before the signal arrives.
    assert sum(killed) >= len(moments) - 1
    summary = run_whole(*corpus.command(job), "--output", out).summary
    runs._look()
    assert tree(out) == expected
    finished = [name for name in runs.kept if not name.endswith(".idx")]
    assert len(finished) > corpus.splits // 20, "what was finished is kept"
    if job == "tokenize":
        assert "was_finished_before" in summary or summary["shards_kept_from_before"] > 0
        assert run_whole("verify", out).summary["whole"] is True


JOBS = ("count", "train", "tokenize")


@pytest.mark.slow
@pytest.mark.parametrize("job", ["tokenize"])
def test_killed_twice(corpus: Corpus, job: str, tmp_path: Path) -> None:
    made = random.Random(f"twice {job}")
    moments: list[str | float] = [made.uniform(0.1, 0.5), made.uniform(0.6, 0.95)]
    disturb(corpus, job, tmp_path / "out", moments, seed=1)


@pytest.mark.scheduled
@pytest.mark.parametrize("job", JOBS)
def test_killed_ten_times(long_corpus: Corpus, job: str, tmp_path: Path) -> None:
    made = random.Random(f"ten times {job}")
    shares: list[str | float] = [(i + made.random()) / 8 for i in range(8)]
    disturb(long_corpus, job, tmp_path / "out", ["begun", *shares, "ended"], seed=2)


@pytest.mark.scheduled
@pytest.mark.parametrize("job", JOBS)
def test_killed_by_the_clock(corpus: Corpus, job: str, tmp_path: Path) -> None:
    """Each time another folder, at a time within the job's measured duration."""
    expected = corpus.undisturbed(job)
    for out in kill_by_the_clock(
        lambda out: Runs(corpus, job, out).command, tmp_path, seed=f"clock {job}"
    ):
        run_whole(*corpus.command(job), "--output", out)
        assert tree(out) == expected

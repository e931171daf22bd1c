"""Faults of hosts, each at a moment of a job on Flink that a seed decides; what came of it."""

from __future__ import annotations

import contextlib
import functools
import random
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from command_line import environment, run_whole
from flink_hosts import WORKERS, FlinkHosts
from made_text import documents, write

LIMIT_SECONDS = 1200
"""The time in which every command ends, whatever has failed: Flink starts a task four times, and a
worker that does not reach its store gives up after four minutes."""
END = "<|endoftext|>"
_RUN = r"work/run-[0-9a-f]{12}/"
PHASES = {
    "count": {
        "launch": "",
        "splits": rf"{_RUN}work/counts-.*\.json",
        "partitions": rf"{_RUN}work/part-.*\.json",
        "publish": r"work/(counts|part)-.*\.json",
    },
    "tokenize": {
        "launch": "",
        "documents": rf"work/documents/{_RUN}work/.*\.json",
        "measure": rf"{_RUN}work/measure-.*\.json",
        "arrange": rf"{_RUN}work/(scatter|shard)-.*\.json",
        "publish": r"work/shard-.*\.json",
    },
    "train": {
        "launch": "",
        "count": rf"counts/{_RUN}work/.*\.json",
        "first round": rf"rounds/{_RUN}work/.*\.json",
        "later round": r"rounds/commit-0*[1-9]",
    },
    "evaluate": {
        "launch": "",
        "splits": rf"counted/counts/{_RUN}work/counts-.*\.json",
        "partitions": rf"counted/counts/{_RUN}work/part-.*\.json",
    },
    "mix": {
        "launch": "",
        "index": rf"{_RUN}work/index-.*\.json",
        "choose": rf"{_RUN}work/keyed-.*\.json",
        "arrange": rf"{_RUN}work/(placed|scatter|shard)-.*\.json",
    },
    "stream-tokenize": {
        "launch": "",
        "window": r"window-0+/__window",
        "shards": r"window-0+/work/.*\.json",
    },
}
"""The phases of each job, and how the name in its folder begins that shows that a phase has."""
_WINDOW = "the shards of a window"
_ONE_WINDOW = ("--window-seconds", "0", "--poll-seconds", "2", "--until-idle-seconds", "0")
_PHASE_SECONDS, _OTHERS = 2.0, {"launch": 15.0, "publish": 0.3}
"""The times after the beginning of a phase in which faults happen."""

_FOR_EVER = float("inf")
Wait = Callable[[float], None]
"""Waits so many seconds, or until the command has ended."""


def _lost(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    cluster.hosts[worker].kill()
    wait(_FOR_EVER)


def _lost_and_back(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    cluster.replace(worker)
    wait(_FOR_EVER)


def _manager_lost(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    cluster.hosts["manager"].kill()
    wait(_FOR_EVER)


def _manager_lost_and_back(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    cluster.replace("manager")
    wait(_FOR_EVER)


def _driver_lost(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    cluster.hosts["driver"].kill()


def _no_store(cluster: FlinkHosts, worker: str, wait: Wait, *, seconds: float) -> None:
    one, store = cluster.hosts[worker], cluster.hosts["store"]
    one.cut(store)
    wait(seconds)
    one.heal(store)


def _no_neighbour(cluster: FlinkHosts, worker: str, wait: Wait, *, seconds: float) -> None:
    other = WORKERS[(WORKERS.index(worker) + 1) % len(WORKERS)]
    cluster.hosts[worker].cut(cluster.hosts[other])
    wait(seconds)
    cluster.hosts[worker].heal(cluster.hosts[other])


def _slow_link(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    cluster.hosts[worker].slow(delay=0.2, loss=0.02)
    wait(_FOR_EVER)


def _slow_worker(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    cluster.hosts[worker].limit(cpus=0.05)
    wait(_FOR_EVER)
    cluster.hosts[worker].kill()


def _store_restarted(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    cluster.end("store")
    wait(3)
    cluster.start_store()


def _store_full(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    store = cluster.hosts["store"]
    with contextlib.suppress(Exception):
        store.run("dd", "if=/dev/zero", "of=/srv/filler", "bs=1M")
    wait(20)
    store.run("rm", "/srv/filler")


def _store_refuses(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    cluster.end("store")
    cluster.start_refusing_store()
    wait(60)
    cluster.end("store")
    cluster.start_store()


def _wrong_clock(cluster: FlinkHosts, worker: str, wait: Wait) -> None:
    cluster.replace(worker, clock=3600)
    wait(_FOR_EVER)
    cluster.hosts[worker].kill()


DRIVER_LOST = "the driver lost"
FAULTS: dict[str, Callable[[FlinkHosts, str, Wait], None]] = {
    "a task manager lost": _lost,
    "a task manager lost and back": _lost_and_back,
    "the job manager lost": _manager_lost,
    "the job manager lost and back": _manager_lost_and_back,
    DRIVER_LOST: _driver_lost,
    "5 s without the store": functools.partial(_no_store, seconds=5),
    "60 s without the store": functools.partial(_no_store, seconds=60),
    "no store for ever": functools.partial(_no_store, seconds=_FOR_EVER),
    "60 s between task managers": functools.partial(_no_neighbour, seconds=60),
    "task managers apart for ever": functools.partial(_no_neighbour, seconds=_FOR_EVER),
    "200 ms and 2 % loss": _slow_link,
    "a worker at a twentieth": _slow_worker,
    "the store restarted": _store_restarted,
    "the store full for 20 s": _store_full,
    "the store answers 503 for 60 s": _store_refuses,
    "a clock wrong by an hour": _wrong_clock,
}


@dataclass(frozen=True)
class Trial:
    """A fault in a job.

    Attributes:
        seed: It decides all of these.
        job: One of PHASES.
        fault: One of FAULTS, or `none`.
        phase: The phase of the job.
        moment: The seconds of the fault after the phase has begun.
        worker: The worker that the fault is about, if it is about one.
    """

    seed: int
    job: str
    fault: str
    phase: str
    moment: float
    worker: str

    @staticmethod
    def of(seed: int) -> Trial:
        """Return the trial of a seed; neighbours have different faults and jobs."""
        chance = random.Random(seed)
        fault = [*FAULTS][seed % len(FAULTS)]
        job = chance.choice([*PHASES, "tokenize"])
        phase = chance.choice([*PHASES[job]])
        moment = round(chance.uniform(0, _OTHERS.get(phase, _PHASE_SECONDS)), 1)
        return Trial(seed, job, fault, phase, moment, chance.choice(WORKERS))


class Jobs:
    """Small jobs, and what they write on one machine."""

    def __init__(self, cluster: FlinkHosts, folder: Path) -> None:
        self._cluster, inputs = cluster, f"{cluster.top}/in"
        cluster.put(folder, inputs)
        corpus = ("--input", f"{inputs}/corpus/*", "--range-bytes", "16KB")
        tokenizer = ("--tokenizer", f"{inputs}/tokenizer/tokenizer.json")
        appended = ("--append", END)
        arranged = ("--sequence-length", "128", "--packing", "best_fit", "--shuffle-seed", "7")
        self._lines = {
            "count": ("count", *corpus),
            "tokenize": ("tokenize", *corpus, *tokenizer, *appended, *arranged),
            "train": ("train", *corpus, "--vocab-size", "300", "--merge-rounds", "distributed"),
            "evaluate": ("evaluate", *corpus, *tokenizer),
            "mix": (
                *("mix", "--input", f"web={inputs}/tokens-0", f"code={inputs}/tokens-1"),
                *("--tokens", "15000", "--share", "web=0.6,code=0.4", *arranged),
            ),
            "stream-tokenize": ("stream-tokenize", *corpus, *tokenizer, *appended, *_ONE_WINDOW),
            # What its window must have; it does not run without a runner.
            _WINDOW: ("tokenize", *corpus, *tokenizer, *appended),
        }
        self._expected: dict[str, dict[str, str]] = {}

    @staticmethod
    def write_corpus(folder: Path) -> None:
        """Write the corpus and a tokenizer, which the hosts then see."""
        for number in range(4):
            write(folder / "corpus" / f"{number}.jsonl", documents(400, seed=number))
        line = ("--input", folder / "corpus", "--vocab-size", "500", "--special-token", END)
        run_whole("train", *line, "--output", folder / "tokenizer")
        tokenizer = ("--tokenizer", folder / "tokenizer" / "tokenizer.json")
        for number in range(2):
            part = ("--input", folder / "corpus" / f"{number}.jsonl", "--range-bytes", "16KB")
            run_whole("tokenize", *part, *tokenizer, "--output", folder / f"tokens-{number}")

    def line(self, job: str, out: str) -> tuple[str, ...]:
        """Return the arguments of a job without a runner."""
        if job == "evaluate":
            return (*self._lines[job], "--work", f"{out}/counted", "--output", f"{out}/report.json")
        return (*self._lines[job], "--output", out)

    def expected(self, job: str) -> dict[str, str]:
        """Return the hashes of what a job writes on one machine, without Beam."""
        if job not in self._expected:
            out = f"{self._cluster.top}/expected/{job}"
            plain = self.line(_WINDOW if job == "stream-tokenize" else job, out)
            line = self._cluster.command(*plain, "--quiet", driver="other-driver")
            ended = subprocess.run(
                line, capture_output=True, env=environment(), timeout=600, check=False
            )
            assert ended.returncode == 0, ended.stderr.decode()
            self._expected[job] = self.published(job, out)
            assert self._expected[job], "a job without files"
        return self._expected[job]

    def published(self, job: str, out: str) -> dict[str, str]:
        """Return the hashes of what a job has written, without the folders of orphans.

        Of a stream: of the shards alone, with their names in the first window.
        """
        stored = self._cluster.stored(out).items()
        mine = {row for row in stored if not re.search(r"(^|/)work/run-", row[0])}
        if job == "stream-tokenize":
            names = ((name.removeprefix("window-00000000/"), sha256) for name, sha256 in mine)
            return {name: sha256 for name, sha256 in names if "shard-" in name}
        return {name: sha256 for name, sha256 in mine if not name.endswith("summary.json")}


@dataclass
class Outcome:
    """What came of a trial.

    Attributes:
        result: `same bytes`; `error, then same bytes`; or what is wrong.
        reached: The phase in which the fault came, by the folder of the job.
        seconds: The time of the command.
        repeat_seconds: The time of its repetition, if there was one.
        message: What the command wrote to stderr.
    """

    result: str
    reached: str
    seconds: float
    repeat_seconds: float | None
    message: str

    @property
    def good(self) -> bool:
        return self.result in ("same bytes", "error, then same bytes")

    def row(self, trial: Trial) -> dict[str, Any]:
        """Return the line of the log."""
        return {**asdict(trial), **asdict(self)}


class _Command:
    """A running command, killed when its block ends."""

    def __init__(self, line: list[str]) -> None:
        self._err = tempfile.TemporaryFile()  # noqa: SIM115
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            line,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._err,
        )

    def __enter__(self) -> _Command:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    @property
    def seconds(self) -> float:
        """The seconds since it was started."""
        return round(time.monotonic() - self._began, 1)

    @property
    def message(self) -> str:
        """What it wrote to stderr."""
        self._err.seek(0)
        return self._err.read().decode(errors="replace").strip()

    def wait(self, seconds: float = _FOR_EVER) -> None:
        """Wait so long, or until it ends, or until it should have ended."""
        end = time.monotonic() + seconds
        while self.code is None and time.monotonic() < end and self.seconds < LIMIT_SECONDS:
            time.sleep(0.1)

    def wait_for(self, cluster: FlinkHosts, trial: Trial, out: str) -> str:
        """Wait for the moment of a trial; return the phase that the job is in then."""
        phases = PHASES[trial.job]

        def reached() -> str:
            names = cluster.names(out)
            seen = [
                phase
                for phase, pattern in phases.items()
                if not pattern or any(re.match(pattern, name) for name in names)
            ]
            return seen[-1]

        order = [*phases]
        wanted = order.index(trial.phase)
        while (
            self.code is None and self.seconds < LIMIT_SECONDS and order.index(reached()) < wanted
        ):
            self.wait(0.1)
        self.wait(trial.moment)
        return reached() if self.code is None else "ended"


def attempt(cluster: FlinkHosts, jobs: Jobs, trial: Trial) -> Outcome:
    """Run a job with its fault, and repeat the command if it ends with an error."""
    expected = jobs.expected(trial.job)
    out = f"{cluster.top}/trials/{trial.seed}-{time.monotonic_ns()}"
    line = (*jobs.line(trial.job, out), *cluster.flags, "--quiet")
    with _Command(cluster.command(*line)) as command:
        reached = command.wait_for(cluster, trial, out)
        if trial.fault != "none":
            FAULTS[trial.fault](cluster, trial.worker, command.wait)
        command.wait()
        code, seconds, message = command.code, command.seconds, command.message
    right = code == 0 and jobs.published(trial.job, out) == expected
    if code in (0, None) or trial.fault != DRIVER_LOST:  # whose job goes on meanwhile
        cluster.restore()
    if code is None:
        return Outcome(f"no end in {LIMIT_SECONDS} s", reached, seconds, None, message)
    if code == 0:
        result = "same bytes" if right else "DIFFERENT BYTES"
        return Outcome(result, reached, seconds, None, message)
    with _Command(cluster.command(*line, driver="other-driver")) as repeated:
        repeated.wait()
        again = repeated.code, repeated.seconds, repeated.message
    same = jobs.published(trial.job, out) == expected
    cluster.restore()
    clear = message.count("\n") < 3 and message.startswith(f"bpe-beam {trial.job}: ")
    if again[0] != 0:
        result, message = "the repetition fails", f"{message}\n{again[2]}"
    elif not same:
        result = "DIFFERENT BYTES"
    elif not clear and trial.fault != DRIVER_LOST:
        result = "no clear error"
    else:
        result = "error, then same bytes"
    return Outcome(result, reached, seconds, again[1], message)

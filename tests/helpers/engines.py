"""Runners for tests, built and started by the script that users have, `scripts/runners.py`.

Where one is missing its tests are skipped with the reason; in CI they fail.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml
from command_line import COMMAND, ROOT, environment
from killed_jobs import started
from waiting import wait_until

from bpe_beam.engines.runner_flags import from_mapping

SCRIPT = ROOT / "scripts" / "runners.py"
TASK_MANAGERS, SLOTS = 2, 2
_BUILD_SECONDS = 2400
_EVIDENCE = {
    "flink": "Flink Mini Cluster started",
    "prism": "INFO:PrismRunner:",
    "spark": "SparkContext: Running Spark version",
}


def missing(why: str) -> NoReturn:
    """End the test: skipped, or failed in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def script(*args: str | Path) -> str:
    """Run the script; return its stdout."""
    line = [sys.executable, str(SCRIPT), *map(str, args)]
    ended = subprocess.run(
        line, capture_output=True, text=True, env=environment(), timeout=_BUILD_SECONDS, check=False
    )
    if ended.returncode != 0:
        missing(ended.stderr.strip())
    return ended.stdout


def flags_of(command: str) -> tuple[str, ...]:
    """Return the flags that choose the runner, out of a command that the script printed."""
    first, job, *flags, reading, _, writing, _ = shlex.split(command)
    assert (first, job, reading, writing) == ("bpe-beam", "count", "--input", "--output")
    return tuple(flags)


def temporary_files(folder: Path) -> str:
    """Return the flag for the folder of the job server's temporary files."""
    return f"--job_server_jvm_property=-Djava.io.tmpdir={folder}"


@dataclass(frozen=True)
class Engine:
    """A runner: its name and its flags.

    Attributes:
        name: `flink`, `prism`, `spark`, or `cluster`.
        flags: For `bpe-beam`.
    """

    name: str
    flags: tuple[str, ...]

    @staticmethod
    def local(name: str, folder: Path) -> Engine:
        """Return a runner that Beam starts with each job.

        Args:
            name: `flink`, `prism` or `spark`.
            folder: The folder where a killed Java leaves its temporary files.
        """
        return Engine(name, (*flags_of(script("command", name)), temporary_files(folder)))

    @property
    def beam_flags(self) -> list[str]:
        """The flags of Beam itself, for pipelines that are not ours."""
        option, config, *more = self.flags
        assert option == "--config"
        settings = yaml.safe_load(Path(config).read_text())
        runner = f"--runner={settings['runner']}"
        return [runner, *from_mapping(settings["runner_options"]), *more]

    def shows_in(self, log: str) -> bool:
        """Return whether a job's log under `--debug` shows that this runner ran it."""
        others = [name for name in _EVIDENCE if name != self.name and _EVIDENCE[name] in log]
        return _EVIDENCE[self.name] in log and not others


@dataclass
class Cluster:
    """A Flink cluster of our own: a job manager and two task managers with two slots each."""

    home: Path
    flags: tuple[str, ...] = ()
    _jobs_before: int = field(default=0)

    def start(self) -> None:
        """Start the cluster."""
        arguments = ("--task-managers", str(TASK_MANAGERS), "--slots", str(SLOTS))
        started = script("start", "--home", self.home, *arguments)
        self.flags = (*flags_of(started), temporary_files(self.home / "tmp"))

    def stop(self) -> None:
        """Stop the cluster; nothing of it may be left but its logs."""
        sessions = set(self.processes.values())
        script("stop", "--home", self.home)
        assert [path.name for path in self.home.iterdir()] == ["log"]
        assert not [each for each, _, _ in _processes() if _session(each) in sessions]

    def engine(self, parallelism: int) -> Engine:
        """Return the runner for so many splits at a time."""
        flags = (flag for flag in self.flags if not flag.startswith("--parallelism="))
        return Engine("cluster", (*flags, f"--parallelism={parallelism}"))

    @property
    def processes(self) -> dict[str, int]:
        """The process ids of `jobmanager`, `taskmanager-1` and so on."""
        found: dict[str, int] = json.loads((self.home / "cluster.json").read_text())["processes"]
        return found

    @property
    def whole(self) -> bool:
        """Whether all task managers live and no job runs."""
        try:
            return bool(self.ask("overview")["taskmanagers"] == TASK_MANAGERS and not self.running)
        except OSError:
            return False

    def ask(self, path: str) -> Any:
        """Return an answer of the REST interface."""
        port = json.loads((self.home / "cluster.json").read_text())["port"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=30) as answer:
            return json.load(answer)

    def jobs(self) -> dict[str, str]:
        """Return the state of each job that the cluster has had, by its id, the oldest first."""
        jobs = sorted(self.ask("jobs/overview")["jobs"], key=lambda job: job["start-time"])
        return {job["jid"]: job["state"] for job in jobs}

    @property
    def running(self) -> list[str]:
        """The ids of the jobs that have not ended."""
        ended = ("FINISHED", "FAILED", "CANCELED")
        return [job for job, state in self.jobs().items() if state not in ended]

    def cancel(self, job: str) -> None:
        """Cancel a job."""
        port = json.loads((self.home / "cluster.json").read_text())["port"]
        url = f"http://127.0.0.1:{port}/jobs/{job}?mode=cancel"
        urllib.request.urlopen(urllib.request.Request(url, method="PATCH"), timeout=30).close()

    def wait_until_idle(self) -> None:
        """Wait until no job runs."""
        wait_until(lambda: not self.running, "the cluster's jobs to end")

    def workers(self) -> list[int]:
        """Return the process ids of the Python workers of all task managers."""
        sessions = set(self.processes.values())
        return [
            each
            for each, _, args in _processes()
            if "sdk_worker_main" in args and _session(each) in sessions
        ]

    def parallelism_of(self, job: str) -> int:
        """Return the number of tasks of the widest step of a job."""
        return max(int(step["parallelism"]) for step in self.ask(f"jobs/{job}")["vertices"])


def finished_pieces(out: Path) -> int:
    """Return the number of receipts in a job's folder, those of running pipelines included."""
    while True:
        with contextlib.suppress(FileNotFoundError):  # a folder went while it was looked at
            return sum(1 for _ in (out / "work").rglob("*.json"))


def launched(
    *args: str | Path, command: tuple[str, ...] = COMMAND
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Start a job in a process group of its own, which is killed when the block ends."""
    return started([*command, *map(str, args), "--quiet"])


def children(process: int) -> dict[int, str]:
    """Return the processes that a process has started, and their commands."""
    rows = _processes()
    return {each: args for each, parent, args in rows if parent == process}


def alive(processes: Iterable[int]) -> list[int]:
    """Return the processes that still run."""
    running = {each for each, _, _ in _processes()}
    return [each for each in processes if each in running]


def _session(process: int) -> int | None:
    try:
        return os.getsid(process)
    except ProcessLookupError:
        return None


def _processes() -> list[tuple[int, int, str]]:
    # Whole lines: something in a test's process may tell ps of a terminal of 80 columns.
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    rows = (line.split(maxsplit=2) for line in listed.stdout.splitlines())
    # One that has ended, and whose parent has not looked, runs no more.
    found = (row for row in rows if len(row) == 3 and "<defunct>" not in row[2])
    return [(int(row[0]), int(row[1]), row[2]) for row in found]

"""Jobs in processes of their own, which are killed with all that they have started."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from command_line import environment
from waiting import SECONDS, wait_until

RUNS = 10
"""How often a job is killed by the clock."""

TRIES = 20
"""How often a job is tried that was beyond the moment before it was killed."""


@contextmanager
def started(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command in a process group of its own, which is killed when the block ends."""
    process = subprocess.Popen(
        [*command],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started, as a machine that goes down does."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stderr is not None:
        process.stderr.close()


def kill_when(
    command: Sequence[str], reached: Callable[[], bool], what: str, delay: float = 0.0
) -> bool:
    """Run a command until a condition is true, and kill it.

    Args:
        command: What is run.
        reached: The condition.
        what: What is waited for, for messages.
        delay: Seconds from then on until the command is killed.

    Returns:
        Whether it was killed before it ended.

    Raises:
        AssertionError: If it failed, or took too long.
    """
    with started(command) as process:
        wait_until(lambda: process.poll() is not None or reached(), what, pause=0.002)
        time.sleep(delay)
        killed = process.poll() is None
        if not killed:
            assert process.returncode == 0, process.communicate()[1].decode()
    return killed


def kill_between(
    command: Sequence[str],
    folder: Path,
    reached: Callable[[], bool],
    beyond: Callable[[], bool],
    what: str,
    delay: float = 0.0,
) -> None:
    """Run a job until a condition is true, and kill it before another one is.

    On a busy machine a job may be beyond the moment before it is looked at: it is tried again, on
    the folder as it was.

    Args:
        command: The job.
        folder: What it writes to, which may not exist.
        reached: The condition.
        beyond: The other one.
        what: What is waited for, for messages.
        delay: Seconds from then on until the first try is killed.

    Raises:
        AssertionError: If it failed, took too long, or was always beyond.
    """
    with tempfile.TemporaryDirectory() as temporary:
        before = Path(temporary) / "before"
        if folder.exists():
            shutil.copytree(folder, before)
        for number in range(TRIES):
            kill_when(command, reached, what, 0 if number else delay)
            if not beyond():
                return
            shutil.rmtree(folder)
            if before.exists():
                shutil.copytree(before, folder)
    raise AssertionError(f"the job was always beyond {what}")


def kill_by_the_clock(
    command: Callable[[Path], Sequence[str]], folder: Path, seed: str
) -> Iterator[Path]:
    """Kill a job at random times within its measured duration, each time with another output.

    Args:
        command: The command that writes to an output folder.
        folder: The parent of the output folders.
        seed: The seed of the times.

    Yields:
        Each output folder, after its run.

    Raises:
        AssertionError: If a run failed, or fewer than half of them were killed.
    """
    duration = _seconds_of(command(folder / "measured"), SECONDS)
    assert duration is not None, "the undisturbed job does not end"
    made = random.Random(seed)
    killed = 0
    for i in range(RUNS):
        out = folder / str(i)
        ended = _seconds_of(command(out), duration * (i + made.random()) / RUNS)
        if ended is None:
            killed += 1
        else:  # the machine was busier before
            duration = ended
        yield out
    assert killed >= RUNS // 2


def _seconds_of(command: Sequence[str], limit: float) -> float | None:
    """Return how long a command takes; None if it was killed at the limit."""
    start = time.monotonic()
    with started(command) as process:
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        assert code == 0, process.communicate()[1].decode()
        return time.monotonic() - start

"""Functions that run in worker processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from waiting import wait_until

from bpe_beam import progress


class Unpicklable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__("no way")


def raise_unpicklable() -> None:
    raise Unpicklable(1, 2)


def raise_(error: Exception) -> None:
    raise error


def reporting(stage: str) -> None:
    progress.report(stage, done=2, bytes=10)


def pid_of(_: object) -> int:
    return os.getpid()


def kill_oneself(_: object = None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail_or_write_later(begun: Path, written: Path | None) -> None:
    """Fail once the other call has begun; the other call ends well after this."""
    if written is None:
        wait_until(begun.exists, "the other call to begin")
        raise ValueError("this call fails")
    begun.touch()
    time.sleep(0.5)
    written.write_text("whole")

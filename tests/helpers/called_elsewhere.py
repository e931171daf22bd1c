"""Functions that run in worker processes."""

from __future__ import annotations

import os
import signal

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

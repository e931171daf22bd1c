"""Jobs that a process of its own imports and runs."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from bpe_beam.errors import DataError
from bpe_beam.progress import Progress


def work(output: str, fails: bool, progress: Progress) -> dict[str, int]:
    """Write a file, need memory and time, and fail or not."""
    with progress.stage("learn", 1, "merges"):
        time.sleep(0.3)
    Path(output, "deep").mkdir(parents=True)
    Path(output, "deep", "a.bin").write_bytes(b"x" * 1000)
    needed = bytearray(200_000_000)
    needed[::4096] = b"x" * len(needed[::4096])
    print("a job may print")
    if fails:
        raise DataError("the job cannot go on")
    return {"vocab_size": 7}


def die(_progress: Progress) -> None:
    """End as a process does whose memory has run out."""
    os.kill(os.getpid(), signal.SIGKILL)

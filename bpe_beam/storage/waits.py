"""Waits for storage, during which the core of a task is free for another task.

A task on the local engine runs while it has one of the engine's cores. While it waits for the
disk without computing, it gives the core back, and then takes one again. On a runner of Beam, a
wait is only a wait.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

_of_thread = threading.local()


@contextlib.contextmanager
def core_taken(cores: threading.Semaphore) -> Iterator[None]:
    """Wait for a core, and have it for the time of a block."""
    with cores:
        _of_thread.cores = cores
        try:
            yield
        finally:
            _of_thread.cores = None


@contextlib.contextmanager
def core_free() -> Iterator[None]:
    """Give this thread's core back for the time of a block, if it has one."""
    cores: threading.Semaphore | None = getattr(_of_thread, "cores", None)
    if cores is None:
        yield
        return
    cores.release()
    try:
        yield
    finally:
        cores.acquire()

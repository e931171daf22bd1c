"""Worker processes of the local engine, for tasks that hold the GIL.

A thread of the engine passes its task to a process, and waits. The program of the processes is
`answer_calls.py`.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from bpe_beam import progress
from bpe_beam.errors import DataError

T = TypeVar("T")

_PROGRAM = "bpe_beam.workers.answer_calls"
_SAFE_PATH = ["-P"] if sys.version_info >= (3, 11) else []
"""The option by which Python imports nothing from the current folder."""


class WorkerProcesses:
    """Worker processes, each with one call at a time; a context manager that ends them.

    Where the system can, a process ends with the thread that made the pool. When one dies, the
    others are killed too, and every call fails with the same error.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._all = [_Worker() for _ in range(count)]
        # The last one first: what it has in memory is of use again.
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self._all:
            self._idle.put(worker)

    def __enter__(self) -> WorkerProcesses:
        return self

    def __exit__(self, *error: object) -> None:
        self._end("the job has ended")

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Return the result of a function of a module, called in one of the processes."""
        worker = self._idle.get()
        try:
            if self._reason is not None:
                raise DataError(self._reason)
            result: T = worker.call(function, args)
            return result
        except _Gone:
            self._end(worker.death())
            raise DataError(str(self._reason)) from None
        finally:
            self._idle.put(worker)

    def _end(self, reason: str) -> None:
        """End all processes; calls fail for this reason, or for the reason of an earlier end."""
        with self._lock:
            if self._reason is None:
                self._reason = reason
                for worker in self._all:
                    worker.end()


class _Gone(Exception):
    """A process no longer answers."""


class _Worker:
    """A process that answers calls, one after another."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        path = [str(entry) for entry in sys.path]
        with theirs:
            # Not by multiprocessing, which would run the user's main module once more.
            self._process = subprocess.Popen(
                [sys.executable, *_SAFE_PATH, "-m", _PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            )
        self._connection = Connection(ours.detach())
        with contextlib.suppress(OSError):  # the first call reports that the process is gone
            self._connection.send((os.getpid(), path))

    def call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Return the result of a function in the process, and forward its progress reports."""
        request = pickle.dumps((function, args))
        while True:
            try:
                if request:
                    self._connection.send_bytes(request)
                    request = b""
                answer = self._connection.recv_bytes()
            except (EOFError, OSError) as error:
                raise _Gone from error
            kind, value = pickle.loads(answer)
            if kind == "report":
                stage, increments = value
                progress.report(stage, **increments)
            elif kind == "failed":
                raise value
            else:
                return value

    def end(self) -> None:
        """Kill the process. A file that it was writing stays an attempt."""
        self._process.kill()
        self._process.wait()

    def death(self) -> str:
        """Return how the process ended, which no longer answers."""
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return f"a worker process ({self._process.pid}) stopped answering"
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        why = ": if memory ran out, use fewer workers" if -code == signal.SIGKILL else ""
        return f"a worker process ({self._process.pid}) died {how}{why}; the same command resumes"

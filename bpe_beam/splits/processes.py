"""Processes that work for a pipeline in process, where Python's lock would let one thread work.

Beam's threads stay: each hands its split to a process, and waits. A process that dies is noticed by
whoever waits for it, at once, and ends the job; Beam's own worker processes would be waited for
without end. On other runners, whose workers are processes anyway, nothing of this is used.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from bpe_beam import progress
from bpe_beam.errors import DataError

T = TypeVar("T")

_pools: dict[str, WorkerProcesses] = {}


@contextlib.contextmanager
def worker_processes(count: int) -> Iterator[str]:
    """Processes for the block; they are started as they are needed, and killed at its end.

    Args:
        count: How many.

    Yields:
        Their name, for `call`; of no meaning in other processes.
    """
    name = secrets.token_hex(6)
    pool = _pools[name] = WorkerProcesses(count)
    try:
        yield name
    finally:
        del _pools[name]
        pool.close()


def call(pool: str | None, function: Callable[..., T], *args: Any) -> T:
    """Calls a function, in one of the processes of that name if they are this process's.

    Args:
        pool: A name from `worker_processes`; None or one from elsewhere: the call is made here.
        function: A function of a module.
        *args: Its arguments; they and the result travel pickled.

    Raises:
        DataError: The process died.
    """
    processes = _pools.get(pool) if pool is not None else None
    return function(*args) if processes is None else processes.call(function, *args)


class WorkerProcesses:
    """Some processes, each with one call at a time.

    Args:
        count: How many calls may run at once; no fewer than threads call.
    """

    def __init__(self, count: int) -> None:
        self._free = threading.Semaphore(count)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._all: list[_Worker] = []
        self._closed = False

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """As the module's `call`."""
        with self._free:
            worker = self._take()
            try:
                result: T = worker.call(function, args)
            finally:
                with self._lock:
                    self._idle.append(worker)
            return result

    def close(self) -> None:
        """Ends all processes, whatever they do."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            worker.end()

    def _take(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise DataError("the job has ended")
            if not self._idle:
                self._idle.append(_Worker())
                self._all.append(self._idle[-1])
            return self._idle.pop()


class _Worker:
    """A process that answers calls, one after another."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            # Not by multiprocessing, which would run the user's main module once more.
            code = (
                f"import sys; sys.path[:] = {sys.path!r}; "
                f"from {__name__} import _serve; _serve({theirs.fileno()})"
            )
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._connection = Connection(ours.detach())

    def call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Has the process call a function, and passes its reports on."""
        request = pickle.dumps((function, args))
        while True:
            try:
                if request:
                    self._connection.send_bytes(request)
                    request = b""
                answer = self._connection.recv_bytes()
            except (EOFError, OSError) as error:
                raise DataError(self._death()) from error
            kind, value = pickle.loads(answer)
            if kind == "report":
                stage, increments = value
                progress.report(stage, **increments)
            elif kind == "failed":
                raise value
            else:
                return value

    def end(self) -> None:
        """Kills the process; what it writes is an attempt that nobody will look at."""
        self._process.kill()
        self._process.wait()

    def _death(self) -> str:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.end()
            return f"a worker process ({self._process.pid}) stopped answering"
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        why = ": if memory ran out, give fewer --workers" if -code == signal.SIGKILL else ""
        return f"a worker process ({self._process.pid}) died {how}{why}; the same command goes on"


def _serve(descriptor: int) -> None:
    """Answers calls until the caller is gone."""
    # Ctrl-C reaches the whole group; the caller decides what becomes of us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(descriptor)
    progress.forward_to(lambda stage, more: connection.send(("report", (stage, more))))
    try:
        while True:
            connection.send_bytes(_answer(connection.recv_bytes()))
    except (EOFError, OSError):
        os._exit(0)


def _answer(request: bytes) -> bytes:
    """What a call gives or raises, pickled as it came."""
    try:
        function, args = pickle.loads(request)
        return pickle.dumps(("done", function(*args)))
    except BaseException as error:
        try:
            data = pickle.dumps(("failed", error))
            pickle.loads(data)  # some exceptions cannot be made again
            return data
        except Exception:
            return pickle.dumps(("failed", RuntimeError(traceback.format_exc())))

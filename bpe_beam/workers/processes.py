"""Worker processes for a pipeline in process, where Python's lock would let one thread run.

Beam's threads stay: each hands its split to a process, and waits. When a process dies the others
are killed, and every call to them fails with the same error, so that all threads end at once;
Beam's own worker processes would be waited for without end. On other runners, whose workers are
processes anyway, nothing of this is used.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import queue
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

_PR_SET_PDEATHSIG = 1

_pools: dict[str, WorkerProcesses] = {}


@contextlib.contextmanager
def worker_processes(count: int) -> Iterator[str]:
    """Processes for the block, killed at its end.

    Args:
        count: How many; more threads than these wait for one another.

    Yields:
        Their name, for `call`; of no meaning in other processes.
    """
    name = f"{os.getpid()}-{secrets.token_hex(6)}"
    pool = _pools[name] = WorkerProcesses(count)
    try:
        yield name
    finally:
        pool.end("the job has ended")
        del _pools[name]


def call(pool: str | None, function: Callable[..., T], *args: Any) -> T:
    """Call a function, in one of the processes of that name if they are this process's.

    Args:
        pool: A name from `worker_processes`; None or one from elsewhere: the call is made here.
        function: A function of a module.
        *args: Its arguments; they and the result travel pickled.

    Raises:
        DataError: A process of the pool died, or its block was left.
    """
    if pool is None or pool.partition("-")[0] != str(os.getpid()):
        return function(*args)
    processes = _pools.get(pool)
    if processes is None:
        raise DataError("the job has ended")
    return processes.call(function, *args)


class WorkerProcesses:
    """Some processes, each with one call at a time.

    They are started by the thread that makes the pool: where the system can, a process ends when
    the thread that started it does, and so when its caller is killed.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._all = [_Worker() for _ in range(count)]
        # The last one first: what it has in memory is of use again.
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self._all:
            self._idle.put(worker)

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """As the module's `call`."""
        worker = self._idle.get()
        try:
            if self._reason is not None:
                raise DataError(self._reason)
            result: T = worker.call(function, args)
            return result
        except _Gone:
            self.end(worker.death())
            raise DataError(str(self._reason)) from None
        finally:
            self._idle.put(worker)

    def end(self, reason: str) -> None:
        """End all processes; calls that run fail for this reason, or an earlier one."""
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
        with theirs:
            # Not by multiprocessing, which would run the user's main module once more.
            code = (
                "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
                f"sys.path[:] = {[str(path) for path in sys.path]!r}; "
                f"from {__name__} import _serve; _serve({theirs.fileno()}, {os.getpid()})"
            )
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._connection = Connection(ours.detach())

    def call(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Return what a function gives in the process, and pass its progress reports on."""
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
        """Kill the process; what it was writing stays an attempt."""
        self._process.kill()
        self._process.wait()

    def death(self) -> str:
        """How the process ended, which no longer answers."""
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return f"a worker process ({self._process.pid}) stopped answering"
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        why = ": if memory ran out, give fewer --workers" if -code == signal.SIGKILL else ""
        return f"a worker process ({self._process.pid}) died {how}{why}; the same command goes on"


def _serve(descriptor: int, caller: int) -> None:
    """Answer calls until the caller is gone.

    Ctrl-C, which reaches the whole group, is ignored by now: the caller decides when to end.
    """
    _end_with(caller)
    connection = Connection(descriptor)
    # By the thread that works, like the answers: the two do not mix.
    progress.forward_to(lambda stage, more: connection.send(("report", (stage, more))))
    try:
        while True:
            connection.send_bytes(_answer(connection.recv_bytes()))
    except (EOFError, OSError):
        os._exit(0)


def _end_with(caller: int) -> None:
    """Have the system end this process with its caller.

    Only Linux does; elsewhere the process notices it at its next report or answer.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != caller:
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

"""The program of a worker process of `processes.py`: calls functions for another process.

`python -m bpe_beam.workers.answer_calls DESCRIPTOR`, with the descriptor of a socket. The caller
sends its process id and its import path, then pickled functions with their arguments.
"""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    # Before Python 3.11, modules of the current folder hide modules of the standard library.
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    # Ctrl-C reaches all processes of a terminal; the caller decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

import contextlib
import ctypes
import os
import pickle
import traceback
from multiprocessing.connection import Connection

from bpe_beam import progress
from bpe_beam.unused_packages import hide_unused_packages

_PR_SET_PDEATHSIG = 1


def main(descriptor: int) -> None:
    """Answer calls over a socket until the caller is gone."""
    connection = Connection(descriptor)
    caller, sys.path[:] = connection.recv()
    _end_with(caller)
    hide_unused_packages()
    # The thread that runs the task sends its reports and its answer, so they do not mix.
    progress.forward_to(lambda stage, more: connection.send(("report", (stage, more))))
    try:
        while True:
            connection.send_bytes(_answer(connection.recv_bytes()))
    except (EOFError, OSError):
        os._exit(0)


def _end_with(caller: int) -> None:
    """Have the system end this process with its caller.

    Only Linux can. Elsewhere the process notices the end at its next report or answer.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != caller:
        os._exit(0)


def _answer(request: bytes) -> bytes:
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


if __name__ == "__main__":
    main(int(sys.argv[1]))

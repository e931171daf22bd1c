"""What the command line sets for its whole process: signals, exit, memory, log filters.

The process is the command's own; programs that import the package get none of this.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import io
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, TextIO, cast

from bpe_beam.cli.error_reporting import WithoutTracebacks

INTERRUPTED = 130
READER_GONE = 141

# Of glibc's malloc.h; other systems have no mallopt, or ignore the numbers.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 32 << 20


def run_and_exit(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> NoReturn:
    """Run the command and end the process.

    Args:
        main: Returns the exit code.
        argv: The arguments after the program's name.
    """
    # Tokens have characters that not every terminal has.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    codes: list[int] = []
    # Registered first, so called last: the functions that the job registers have run by then.
    atexit.register(_leave, codes)
    _prepare()
    if "--debug" not in argv:
        # A failure of a runner's worker thread reaches the job, which reports it. The errors of
        # its other threads, whose connections close at the end of a job, are noise.
        threading.excepthook = lambda _: None
    code = main(argv)
    if code == INTERRUPTED:
        # Python would wait until the threads of a runner have done their last batch; what they
        # leave unfinished was never visible.
        os._exit(code)
    codes.append(code)
    sys.exit(code)


def _leave(codes: Sequence[int]) -> None:
    """End the process without tearing the interpreter down.

    A thread of pyarrow's pools may release a buffer of Python a moment after the read that it
    belongs to has returned. Python ends a thread that enters it during the teardown, and C++ then
    aborts the process.

    Args:
        codes: The exit code; empty if `main` did not return, whose error Python then reports.
    """
    if not codes:
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(codes[0])


def _prepare() -> None:
    """Make jobs faster by settings of the process."""
    # Imports make a million objects that live on: searching them for garbage again and again takes
    # a tenth of a small job's time.
    gc.set_threshold(1_000_000, 50, 50)
    # NumPy would start threads for linear algebra, which no job uses, and let them spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Each batch allocates blocks of some MB. Returning them to the system each time costs a tenth
    # of a count job in page faults.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 8 * _KEPT_BYTES)


def drop_stdout() -> None:
    """Send stdout nowhere, once its reader is gone: Python flushes it at exit, and complains."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def quiet_beam(debug: bool) -> Iterator[None]:
    """Keep Beam's log and its tracebacks from stderr: the command reports a failure once.

    Args:
        debug: Show Beam's log instead.
    """
    if debug:
        logging.basicConfig(level=logging.INFO)
        yield
        return
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(cast(TextIO, WithoutTracebacks(sys.stderr))):
            yield
    finally:
        logging.disable(before)

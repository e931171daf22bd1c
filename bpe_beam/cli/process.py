"""Settings of the command line's whole process: exit, memory, log filters.

Programs that import the package get none of them.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TextIO, cast

from bpe_beam.cli import interrupts
from bpe_beam.cli.error_reporting import Masked, WithoutTracebacks
from bpe_beam.errors import DataError
from bpe_beam.jobs.output import stdout_errors
from bpe_beam.unused_packages import hide_unused_packages

READER_GONE = 141  # the exit code after the reader of stdout closed it, as in shells

# Numbers of glibc's malloc.h. Other systems have no mallopt, or ignore the numbers.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_RETAINED_BYTES = 32 << 20


def run_and_exit(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> NoReturn:
    open_streams()
    codes: list[int] = []
    # Registered first, so called last, after the functions that the job registers.
    atexit.register(_leave, codes)
    _prepare()
    if "--debug" not in argv:
        # A failure of a runner's worker thread reaches the job, which reports it. Its other threads
        # fail because their connections close at the end of a job.
        threading.excepthook = lambda _: None
        # After the end of the job they also log failures that the command has reported.
        logging.disable(logging.CRITICAL)
    sys.unraisablehook = _end_if_interrupted
    interrupts.end_by_exception()
    code = main(argv)
    interrupts.end_at_once()
    if interrupts.was_received():
        # Python would wait for the last batch of a runner's threads. Their unfinished files are
        # invisible.
        os._exit(code)
    codes.append(code)
    sys.exit(code)


def open_streams() -> None:
    """Give the process the three standard streams, whose errors name them.

    A stream that the caller closed is opened again: its use fails, but messages on stderr are
    dropped. Otherwise the next opened file would get its number, and its text.
    """
    # The free number, which is the lowest, is taken at once.
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), write_through=True)
    sys.stderr = cast(TextIO, Masked(sys.stderr))
    # Tokens may have characters that the terminal's encoding lacks.
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Stdout(1, "w", closefd=False)),
        encoding=sys.stdout.encoding if sys.stdout is not None else None,
        errors="backslashreplace",
        line_buffering=os.isatty(1),
    )


class _Stdout(io.FileIO):
    """Standard output, whose errors name it."""

    def write(self, data: Any) -> int:
        with stdout_errors():
            return super().write(data)


def _leave(codes: Sequence[int]) -> None:
    """End the process without tearing the interpreter down.

    A thread of pyarrow's pools may release a buffer of Python a moment after the read that it
    belongs to has returned. Python ends a thread that enters it during the teardown, and C++ then
    aborts the process.
    """
    if not codes:  # `main` did not return, and Python reports its error
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, DataError):
            stream.flush()
    os._exit(codes[0])


def _end_if_interrupted(unraisable: sys.UnraisableHookArgs) -> None:
    """End the process if a signal came where Python ignores exceptions, such as in a destructor."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        interrupts.end_now(interrupts.sentence(), interrupts.exit_code())
    sys.__unraisablehook__(unraisable)


def _prepare() -> None:
    """Make jobs faster by settings of the process."""
    hide_unused_packages()
    # NumPy would start busy threads for linear algebra, which no job uses.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The allocators of pyarrow take more blocks from the system, in addition to the blocks that
    # malloc keeps. That costs 10 % more memory, and up to 10 % of the time in page faults.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    # Each batch allocates blocks of some MB. Returning them to the system each time costs 10 % of
    # a count job in page faults.
    import ctypes  # only now: in some Pythons it takes the number of a closed standard stream

    with contextlib.suppress(AttributeError, OSError, ValueError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _RETAINED_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 8 * _RETAINED_BYTES)
        # Memory in the arena of a thread would be unusable in the other steps of a job.
        mallopt(_M_ARENA_MAX, 1)


def drop_stdout() -> None:
    """Discard stdout after its reader closed it; Python's flush at exit would fail otherwise."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def quiet_beam(debug: bool) -> Iterator[None]:
    """Keep Beam's log and its tracebacks from stderr, since the command reports a failure once."""
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

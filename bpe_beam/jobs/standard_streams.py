"""Standard input and output of jobs whose input or result a person types or reads."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

from bpe_beam.errors import DataError

STDOUT = "-"
"""The name of stdout in place of a path."""


def prompt_on_terminal(what: str) -> None:
    """Say on stderr what to type, such as "the text", if standard input is a terminal."""
    if sys.stdin.isatty():
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        print(f"type {what}, then {end} on a line of its own:", file=sys.stderr, flush=True)


def read_stdin() -> bytes:
    """Return all of stdin."""
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise DataError(f"cannot read standard input: {_reason(error)}") from error


def write_stdout(data: bytes) -> None:
    """Write bytes to stdout, after what was printed before."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def stdout_errors() -> Iterator[None]:
    """Return a context that names stdout in errors of writing to it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"cannot write to standard output: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)


def require_stdout() -> None:
    """Refuse a closed stdout before the work for what will be written there."""
    try:
        number = sys.stdout.fileno()
    except (AttributeError, OSError):  # a stream in memory
        return
    with stdout_errors():
        os.write(number, b"")

"""Errors as the command line shows them: one message on stderr, and the exit code."""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Callable
from typing import TextIO

from bpe_beam.engines.runner_errors import STEP, TRACEBACK, is_out_of_memory, our_error
from bpe_beam.errors import UsageError
from bpe_beam.storage.masking import masked
from bpe_beam.terminal import Terminal


def report(
    command: str, error: Exception, name_of: Callable[[str], str], *, debug: bool = False
) -> int:
    """Show an error on stderr, and return the exit code: 2 for wrong usage, else 1."""
    if debug:
        traceback.print_exception(error)
    ours = our_error(error)
    if ours is not None:
        code = 2 if isinstance(ours, UsageError) else 1
        return write_message(f"{command}: {ours.message(name_of)}", code)
    if is_out_of_memory(error):
        problem = (
            f"not enough memory ({describe(error)}); try fewer workers, smaller inputs, or a "
            "higher memory limit of the process (ulimit -v) or container"
        )
    else:
        problem = f"failed unexpectedly: {describe(error)}"
        problem += "" if debug else "; run with --debug for more"
    return write_message(f"{command}: {problem}", 1)


def write_message(message: str, code: int = 0) -> int:
    """Write a message to stderr in lines that fit a terminal, and return the exit code."""
    write_text(Terminal(sys.stderr).wrap_message(message))
    return code


def write_text(text: str) -> None:
    """Write a text to stderr as it is, unless stderr is closed."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def describe(error: BaseException) -> str:
    """Return one line for an error that is a defect, such as "ValueError: no such thing"."""
    text = str(error).strip()
    if TRACEBACK in text:
        # A worker's failure as text: the exception is the last line that is not indented.
        lines = [line for line in text.splitlines() if line and not line[0].isspace()]
        return re.sub(STEP, "", lines[-1])
    # NumPy gives a page of advice before it names the failure.
    text = text.partition("Original error was: ")[2] or text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class WithoutTracebacks:
    """A stream that drops tracebacks, if each is written in one call.

    Beam's worker threads print the traceback of a failure to stderr before the failure reaches the
    caller, who reports it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._swallow_newline = False

    def write(self, text: str) -> int:
        if text.lstrip().startswith(TRACEBACK):
            self._swallow_newline = True
        elif not (self._swallow_newline and text == "\n"):
            self._swallow_newline = False
            self._stream.write(text)
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class Masked:
    """A stream that masks the secrets of this process, such as in tracebacks and logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(masked(text))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

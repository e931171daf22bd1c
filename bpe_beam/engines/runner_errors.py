"""What a failed job has to say: the sentence meant for people, out of what a runner makes of it.

A runner may raise our error as it is, with the step's name behind it, as a cause, or as the text of
a remote traceback inside a `RuntimeError`; users should see the same sentence each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from bpe_beam.errors import DataError, NotFoundError, UsageError

_KINDS: dict[str, type[UsageError] | type[DataError]] = {
    "UsageError": UsageError,
    "DataError": DataError,
    "NotFoundError": NotFoundError,
}
# The message ends where Beam names the step, or where the traceback or a Java stack goes on: our
# own messages hold no blank line.
_OURS = re.compile(
    r"bpe_beam\.errors\.(UsageError|DataError|NotFoundError): "
    r"(.*?)(?=\ \[while\ running\ '|\n\s*\n|\n\tat\ |\Z)",
    re.DOTALL,
)
# What a runner is started from, and Beam downloads; the reason ends where its own advice begins.
_FETCH = re.compile(
    r"Unable to fetch remote (.+?) at (\S+): (?:<urlopen error )?(.*?)>?(?:\. (?:Also|If) |\Z)",
    re.DOTALL,
)
_STEP = re.compile(r" \[while running '.*'\]\s*\Z", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last)"


def our_error(error: BaseException) -> UsageError | DataError | None:
    """Finds the error of ours that a runner's exception stands for, or what it should have said.

    Args:
        error: What a job raised.

    Returns:
        The error with its own message, or None if `error` is another failure.
    """
    chain = list(_chain(error))
    for each in chain:
        if isinstance(each, UsageError | DataError):
            return type(each)(_STEP.sub("", str(each)))
    for each in chain:
        match = _OURS.search(str(each))
        if match is not None:
            return _KINDS[match[1]](match[2].strip())
    for each in chain:
        match = _FETCH.search(str(each))
        if match is not None:
            return DataError(
                f"the runner's {match[1]} cannot be fetched from {match[2]} ({match[3]}): "
                "python scripts/runners.py get builds it, and docs/runners.md says how to name it"
            )
    return None


def was_interrupted(error: BaseException) -> bool:
    """Whether somebody pressed Ctrl-C, which Beam wraps like a failure where its step runs in the
    main thread.

    Args:
        error: What a job raised.
    """
    return any(isinstance(each, KeyboardInterrupt) for each in _chain(error))


def describe(error: BaseException) -> str:
    """One line for a failure that is none of ours: its type and message, without a traceback.

    Args:
        error: What a job raised.

    Returns:
        E.g. "ValueError: no such thing".
    """
    text = str(error).strip()
    if _TRACEBACK in text:
        # A worker's failure as text: the exception is the last line that is not indented.
        lines = [line for line in text.splitlines() if line and not line[0].isspace()]
        return _STEP.sub("", lines[-1])
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and all it came from, each once."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            todo += [each.__context__, each.__cause__]


class WithoutTracebacks:
    """A stream that leaves out tracebacks written to it whole.

    Beam's worker threads print the traceback of a failure to stderr on their own, before the
    failure reaches the caller who will report it.

    Args:
        stream: Where everything else goes.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._swallow_newline = False

    def write(self, text: str) -> int:
        """Writes `text`, unless it is a traceback or the newline after one."""
        if text.lstrip().startswith(_TRACEBACK):
            self._swallow_newline = True
        elif not (self._swallow_newline and text == "\n"):
            self._swallow_newline = False
            self._stream.write(text)
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

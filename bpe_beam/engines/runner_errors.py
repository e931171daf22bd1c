"""What a failed job has to say: the sentence meant for people, out of what a runner makes of it.

A runner may raise our error as it is, with the step's name behind it, as a cause, or as the text of
a remote traceback inside a `RuntimeError`; users should see the same sentence each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
STEP = re.compile(r" \[while running '.*'\]\s*\Z", re.DOTALL)
TRACEBACK = "Traceback (most recent call last)"


def our_error(error: BaseException) -> UsageError | DataError | None:
    """Find the error of ours that a runner's exception carries or should have raised.

    Args:
        error: What a job raised.

    Returns:
        The error with its own message, or None if `error` is another failure.
    """
    chain = list(_chain(error))
    for each in chain:
        if isinstance(each, UsageError | DataError):
            text = STEP.sub("", str(each))
            return each if text == str(each) else type(each)(text)
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

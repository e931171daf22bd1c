"""Finds our own error in the exception that a runner makes of it.

A runner may raise our error as it is, with the step's name after it, as a cause, or as the text of
a remote traceback inside a `RuntimeError`. Users see the same sentence each time.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from bpe_beam.errors import DataError, NotFoundError, UsageError, lacks_memory

_KINDS = {kind.__name__: kind for kind in (UsageError, DataError, NotFoundError)}
# The message ends where Beam names the step, or where the traceback or a Java stack continues: our
# own messages hold no blank line.
_OURS = (
    r"(?s)bpe_beam\.errors\.(UsageError|DataError|NotFoundError): "
    r"(.*?)(?=\ \[while\ running\ '|\n\s*\n|\n\tat\ |\Z)"
)
# A file that Beam downloads to start a runner. The reason ends where Beam's own advice begins.
_FETCH = (
    r"(?s)Unable to fetch remote (.+?) at (\S+): (?:<urlopen error )?(.*?)>?(?:\. (?:Also|If) |\Z)"
)
STEP = r"(?s) \[while running '.*'\]\s*\Z"
# Compiled while there is memory.
_NO_MEMORY = re.compile(
    r"(?m)^MemoryError\b|\bbad_alloc\b|^can't start new thread|: failed to map segment from shared|"
    r"^(?:malloc|realloc) .*failed$|without (?:setting an exception|exception set)$"
)
_ALLOCATION = re.compile(r"^(?:malloc|realloc) of size")
TRACEBACK = "Traceback (most recent call last)"


class JobCancelled(DataError):
    """Somebody cancelled the job on its runner."""

    def __init__(self) -> None:
        super().__init__("the job was cancelled on its runner")

    def __reduce__(self) -> tuple[type[JobCancelled], tuple[object, ...]]:
        return JobCancelled, ()


def our_error(error: BaseException) -> UsageError | DataError | None:
    """Return our own error that a runner's exception contains; None if it contains none."""
    chain = list(_chain(error))
    # Not what was being handled when memory ended; and what pyarrow could not read is not damaged.
    if isinstance(error, MemoryError) or any(
        _ALLOCATION.search(str(each)) and lacks_memory(each) for each in chain
    ):
        return None
    for each in chain:
        if isinstance(each, UsageError | DataError):
            text = re.sub(STEP, "", str(each))
            return each if text == str(each) else type(each)(text)
    texts = [str(each) for each in chain]
    for match in filter(None, (re.search(_OURS, text) for text in texts)):
        return _KINDS[match[1]](match[2].strip())
    for match in filter(None, (re.search(_FETCH, text) for text in texts)):
        return DataError(
            f"the runner's {match[1]} cannot be fetched from {match[2]} ({match[3]}): "
            "python scripts/runners.py get builds it, and docs/runners.md says how to name it"
        )
    return None


def failure_of_runner(error: BaseException) -> DataError | None:
    """Return the error of a runner that has failed itself, as when it loses a host."""
    failed = re.search(r"failed in state FAILED: (.+)", str(error))
    if failed is None or TRACEBACK in str(error) or our_error(error) or is_out_of_memory(error):
        return None
    return DataError(
        f"the runner ended the job: {failed[1].strip()}",
        remedy="when the runner and its hosts work, run the same command again",
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether the process, or a thread or worker of it, got no more memory.

    A thread that cannot be started lacks the memory of its stack, or the process has too many.
    """
    return any(
        isinstance(each, MemoryError)
        or (isinstance(each, OSError) and each.errno == errno.ENOMEM)
        or _NO_MEMORY.search(str(each)) is not None
        for each in _chain(error)
    )


def was_interrupted(error: BaseException) -> bool:
    """Return whether an error is of Ctrl-C, which Beam wraps if a step runs in the main thread."""
    return any(isinstance(each, KeyboardInterrupt) for each in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its causes and its contexts, each once."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            todo += [each.__context__, each.__cause__]

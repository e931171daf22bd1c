"""The deadline of a text: a tokenizer's file may be hostile, with patterns that never end.

A text may take `text_seconds()`, and one more second for each TEXT_BYTES_PER_SECOND bytes. Only the
CPU time of its thread counts, so that a busy machine makes no text fail. The native code has the
deadline of each thread; searches in Python ask it for the time left.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from bpe_beam.errors import UsageError

if TYPE_CHECKING:
    from bpe_beam import _native

T = TypeVar("T")

VARIABLE = "BPE_BEAM_TEXT_SECONDS"
"""The environment variable that sets the seconds; it is read when a tokenizer encodes or decodes
for the first time."""

DEFAULT_SECONDS = 20.0


def text_seconds() -> float:
    """Return the CPU seconds that a short text may take."""
    value = os.environ.get(VARIABLE)
    if not value:
        return DEFAULT_SECONDS
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise UsageError(f"{VARIABLE} must be a number of seconds above 0, got {value!r}")
    return seconds


def deadline_of(size: int) -> _native.TextDeadline:
    """Return a context in which this thread has a deadline, for a text of `size` bytes."""
    from bpe_beam import _native

    return _native.TextDeadline(text_seconds() + size / _native.TEXT_BYTES_PER_SECOND)


def seconds_left(size: int) -> float:
    """Return the CPU seconds for a search through `size` bytes: what the thread's text has left."""
    from bpe_beam import _native

    left = _native.seconds_left()
    return left if left < math.inf else text_seconds() + size / _native.TEXT_BYTES_PER_SECOND


def search_within(seconds: float, search: Callable[[float], T]) -> T:
    """Run a search of the `regex` package with a limit on this thread's CPU time.

    The timeout of `regex` counts the CPU time of the whole process, so that it comes early where
    other threads work. Such a search runs again, with twice the timeout.
    """
    timeout = seconds
    while True:
        start = time.thread_time()
        try:
            return search(timeout)
        except TimeoutError:
            if time.thread_time() - start >= seconds:
                raise
        timeout *= 2

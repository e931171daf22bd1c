"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 600
"""What nothing here takes, however busy the machine is."""


def wait_until(
    reached: Callable[[], object], what: str, *, seconds: float = SECONDS, pause: float = 0.02
) -> None:
    """Wait until `reached()` is true.

    Args:
        reached: The condition.
        what: What is waited for, for the message.
        seconds: How long at most.
        pause: Seconds between two looks.

    Raises:
        AssertionError: If it takes too long.
    """
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(pause)

"""The pace of this machine: its time for a fixed piece of work, next to a reference machine's.

A virtual machine's pace changes within seconds, as its neighbours work, and by a factor of two.
"""

from __future__ import annotations

import time

REFERENCE_SECONDS = 65e-9
"""The reference machine's time for an addition of Python, which is what its pace is measured by."""

ADDITIONS = 2 * 10**6


def pace(additions: int = ADDITIONS) -> float:
    """Return the processor time of this machine for what takes the reference machine a second."""
    began, total = time.thread_time(), 0
    for number in range(additions):
        total += number
    return (time.thread_time() - began) / (REFERENCE_SECONDS * additions)

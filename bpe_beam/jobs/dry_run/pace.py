"""The pace of this machine: its time for a fixed loop, divided by a reference machine's.

As with a runner's pace, more is slower. A virtual machine's changes within seconds, by a factor of
up to two, so it is measured all the time while other work runs. The loop is of Python, as
most of the work whose time the model of costs knows: another version of Python has another pace.
"""

from __future__ import annotations

import threading
import time

REFERENCE_SECONDS = 65e-9  # the reference machine's time for an addition in the loop

_SECONDS, _ADDITIONS = 0.1, 20_000  # between two measurements, and of a measurement


class Pace:
    """Measures the pace of the machine, by a thread that takes a hundredth of a core."""

    def __enter__(self) -> Pace:
        self._measured = [pace(_ADDITIONS)]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _measure(self) -> None:
        while not self._ended.wait(_SECONDS):
            self._measured.append(pace(_ADDITIONS))

    @property
    def mean(self) -> float:
        """The mean pace since the start."""
        return sum(self._measured) / len(self._measured)


def pace(additions: int) -> float:
    """Return the pace of one measurement, by the processor time of this thread."""
    began, total = time.thread_time(), 0
    for number in range(additions):
        total += number
    return (time.thread_time() - began) / (REFERENCE_SECONDS * additions)

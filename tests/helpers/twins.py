"""Two that do the same at the same moment, in threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from bpe_beam.storage import Storage

SECONDS = 120
"""How long one waits for the other before the test fails."""


@dataclass(frozen=True)
class Meeting(Storage):
    """Two watchers meet at a call: when one is in the midst of it, so is the other.

    Attributes:
        at: What they do there: `move`, or the end of the name of a file that they write.
    """

    at: str = "move"
    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))
    _once: set[int] = field(default_factory=set)

    def _are_contiguous(self) -> None:
        if threading.get_ident() not in self._once:
            self._once.add(threading.get_ident())
            self.barrier.wait(SECONDS)

    def move(self, source: str, target: str) -> None:
        if self.at == "move":
            self._are_contiguous()
        super().move(source, target)

    @contextmanager
    def create(self, url: str) -> Iterator[BinaryIO]:
        with super().create(url) as file:
            yield file
            if url.endswith(self.at):
                self._are_contiguous()

"""Two writers that do the same at the same moment, in threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import BinaryIO

from msgspec import field

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage

SECONDS = 120
"""How long one waits for the other before the test fails."""


class Meeting(Storage, frozen=True):
    """A storage where two writers meet at a call: when one is in it, so is the other.

    Attributes:
        at: The call: `move`, or the end of the name of a file that they write.
    """

    at: str = "move"
    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))
    _once: set[int] = field(default_factory=set)

    def _meet(self) -> None:
        if threading.get_ident() not in self._once:
            self._once.add(threading.get_ident())
            self.barrier.wait(SECONDS)

    def move(self, source: str, target: str) -> None:
        if self.at == "move":
            self._meet()
        super().move(source, target)

    @contextmanager
    def create(self, url: str) -> Iterator[BinaryIO]:
        with super().create(url) as file:
            yield file
            if url.endswith(self.at):
                self._meet()


class LateWriter(Storage, frozen=True):
    """A storage that gives a file its name only after the other writer is done.

    Attributes:
        late: The end of the file's name.
        failure: An error's message: the file never gets its name.
        writing: Set when the file is written and has no name yet.
        other_is_done: What is waited for then.
        attempts: The attempts at files beside it that there are after that.
    """

    late: str = "__manifest"
    failure: str | None = None
    writing: threading.Event = field(default_factory=threading.Event)
    other_is_done: threading.Event = field(default_factory=threading.Event)
    attempts: list[str] = field(default_factory=list)

    @contextmanager
    def create(self, url: str) -> Iterator[BinaryIO]:
        with super().create(url) as file:
            yield file
            if url.endswith(self.late):
                self.writing.set()
                assert self.other_is_done.wait(SECONDS)
                there = self.list_names(url[: -len(PurePosixPath(url).name) - 1])
                self.attempts.extend(name for name in there if ".attempt-" in name)
                if self.failure is not None:
                    raise DataError(self.failure)

"""Values that a worker process makes once for all tasks of a round, such as the round's merges."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar, cast

from bpe_beam.storage.hashing import read_hashed
from bpe_beam.workers.rounds.task import ROUND_FILE, RoundFile, RoundTask
from bpe_beam.workers.split_task import require_visible

T = TypeVar("T")
_lock = threading.RLock()
_cached: dict[str, object] = {}
_cached_round = ""


def once_a_round(task: RoundTask, name: str, make: Callable[[], T]) -> T:
    """Return a value that this process makes once for all tasks of a round."""
    global _cached_round
    with _lock:
        if _cached_round != task.folder.url:  # each round has a folder of its own
            _cached.clear()
            _cached_round = task.folder.url
        if name not in _cached:
            _cached[name] = make()
        return cast(T, _cached[name])


def forget_round() -> None:
    """Drop what this process has in memory of a round."""
    with _lock:
        _cached.clear()


def round_file(task: RoundTask) -> RoundFile:
    """Return the merges and settings of the round."""

    def read() -> RoundFile:
        storage, url = task.folder.storage, task.folder.path(ROUND_FILE)
        require_visible(storage, task.folder.url, task.counts)
        return RoundFile.from_bytes(read_hashed(storage, url, task.round_file_sha256))

    return once_a_round(task, "file", read)

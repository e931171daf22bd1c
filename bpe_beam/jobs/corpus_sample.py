"""Read a sample of a corpus for some seconds, and process it as a job does.

Some splits are open at once, which are spread over the corpus, and each in turn gives one batch: so
the sample has as much of each, however fast they are read. Where one ends, another one is begun:
what is read whole in the time gives exact amounts.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.corpus.readers import BATCH_BYTES, read_split
from bpe_beam.engines.local import scattered
from bpe_beam.jobs import corpus_input
from bpe_beam.jobs.corpus_summary import inputs_summary
from bpe_beam.settings.common import InputSettings
from bpe_beam.storage import Storage
from bpe_beam.workers.split_task import text_bytes_of

_MOST_OPEN, _MOST_OPEN_OF_THREAD = 64, 4
"""The splits that are open at once, in total and for each thread: the greater number counts. Each
has a file, and what was made of it."""


def most_open(threads: int) -> int:
    """Return how many splits are open at once."""
    return max(_MOST_OPEN, _MOST_OPEN_OF_THREAD * threads)


class SplitProcess(Protocol):
    """What is done with the documents of one split."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Process documents."""

    def end(self, stored: int) -> None:
        """Process what is left at the split's end.

        Args:
            stored: The stored bytes of the split that were read.
        """


@dataclass
class Sample:
    """What was read of a corpus, and how long it took.

    Attributes:
        seconds: The seconds of all threads together.
        stored: The stored bytes that were read.
        first: The first documents.
        share: The share of the corpus that was read.
    """

    plan: Plan
    seconds: float = 0.0
    stored: int = 0
    documents: int = 0
    text_bytes: int = 0
    rejects: int = 0
    first: pa.RecordBatch | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def share(self) -> float:
        return max(self.stored, 1) / max(self.plan.size, self.stored, 1)

    def whole(self, amount: float) -> int:
        """Return an amount of the whole corpus, from that of the sample."""
        return round(amount / self.share)

    def seconds_of_all(self, workers: int) -> float:
        """Return the seconds in which workers process all splits, each one at a time."""
        speed = max(self.stored, 1) / max(self.seconds, 1e-9)
        free = [0.0] * workers
        for number in scattered(len(self.plan.splits)):
            heapq.heapreplace(free, free[0] + self.plan.splits[number].size / speed)
        return max(free)

    def summary(self) -> dict[str, Any]:
        """Return the rows of the summary about the input."""
        rows = inputs_summary(self.plan, ())
        del rows["files_read_by_one_worker"]
        return {
            **rows,
            "bytes": self.plan.size,
            "splits": len(self.plan.splits),
            "sampled_bytes": self.stored,
            "documents": self.whole(self.documents),
            "text_bytes": self.whole(self.text_bytes),
            "rejects": self.whole(self.rejects),
        }


class _OpenSplit:
    """A split that is being read.

    Args:
        process: What is done with its documents.
        batches: Returns its documents, from functions that get its rejects and its stored bytes.
    """

    def __init__(
        self, process: SplitProcess, batches: Callable[..., Iterator[pa.RecordBatch]]
    ) -> None:
        self.process = process
        self.stored = self.documents = self.text_bytes = self.rejects = 0
        self.first: pa.RecordBatch | None = None
        self._batches = batches(self._on_reject, on_read=self._on_read)

    def read_batch(self) -> bool:
        """Process the next batch; return whether there was one."""
        batch = next(self._batches, None)
        if batch is None:
            return False
        self.first = self.first or batch
        self.process.add(batch)
        self.documents += batch.num_rows
        self.text_bytes += text_bytes_of(batch)
        return True

    def _on_read(self, count: int) -> None:
        self.stored += count

    def _on_reject(self, _: object) -> None:
        self.rejects += 1


def read_sample(
    storage: Storage,
    plan: Plan,
    input_settings: InputSettings,
    begin: Callable[[Split], SplitProcess],
    *,
    threads: int,
    seconds: float,
    only_text: bool,
    batch_bytes: int = BATCH_BYTES,
) -> Sample:
    """Read parts of splits from all over the corpus until the time is over.

    Args:
        storage: The storage client.
        plan: The plan of the corpus.
        input_settings: The input settings.
        begin: Returns what is done with the documents of a split.
        threads: The number of threads.
        seconds: The time.
        only_text: See `read_split`.
        batch_bytes: See `read_split`.

    Returns:
        What was read, and how long it took.
    """
    sample, settings = Sample(plan), corpus_input.read_settings(input_settings)
    new = deque(plan.splits[number] for number in scattered(len(plan.splits)))
    waiting: deque[_OpenSplit] = deque()
    most = most_open(threads)
    in_turn = 0
    started = time.monotonic()

    def next_split() -> _OpenSplit | None:
        nonlocal in_turn
        with sample._lock:
            if not new or in_turn >= most:
                return waiting.popleft() if waiting else None
            split = new.popleft()
            in_turn += 1

        def batches(on_reject: Any, on_read: Any) -> Iterator[pa.RecordBatch]:
            return read_split(
                storage,
                plan,
                split,
                settings,
                on_reject,
                batch_bytes=batch_bytes,
                only_text=only_text,
                on_read=on_read,
            )

        return _OpenSplit(begin(split), batches)

    def end(split: _OpenSplit) -> None:
        nonlocal in_turn
        split.process.end(split.stored)
        with sample._lock:
            in_turn -= 1
            sample.first = sample.first or split.first
            for name in ("stored", "documents", "text_bytes", "rejects"):
                setattr(sample, name, getattr(sample, name) + getattr(split, name))

    def read(_: int) -> None:
        begun = time.monotonic()
        while time.monotonic() - started < seconds and (split := next_split()) is not None:
            if split.read_batch():
                waiting.append(split)
            else:
                end(split)
        while True:
            try:
                split = waiting.popleft()
            except IndexError:  # none is left, or another thread was faster
                break
            end(split)
        with sample._lock:
            sample.seconds += time.monotonic() - begun

    with ThreadPoolExecutor(threads) as pool:
        deque(pool.map(read, range(threads)), maxlen=0)
    return sample

"""Counting texts in memory on threads.

The calling thread takes texts from the iterable, a batch at a time, and each thread counts batches
into a word table of its own, where the kernels release the GIL. Few batches wait at any time, so a
generator is not read ahead. Memory: the unique words, `TABLE_BYTES` for each thread, and these
batches. Where the pattern holds the GIL, worker processes count the batches instead.
"""

from __future__ import annotations

import itertools
import queue
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from bpe_beam.api.text_batches import Batch, batches_of
from bpe_beam.counts.manifest import check_sources
from bpe_beam.counts.word_counter import WordCounter, WordRules
from bpe_beam.counts.word_counts import CountedSource, WordCounts
from bpe_beam.counts.word_table import Blocks, WordTable, schema_of
from bpe_beam.errors import DataError
from bpe_beam.progress import Stage
from bpe_beam.workers.processes import WorkerProcesses

TABLE_BYTES = 64_000_000
"""The maximum memory of a thread's table; then its words move to the table of all threads."""

_WAITING = 2
"""Batches for each thread, counted or waiting."""


def count_texts(
    rules: WordRules,
    sources: Mapping[str | None, Iterable[Any]],
    workers: int,
    stage: Stage,
) -> WordCounts:
    """Return the counts of texts."""
    if None not in sources:
        check_sources([str(name) for name in sources])
    counted: dict[str | None, CountedSource] = {}
    first = 0
    for name, texts in sources.items():
        source = _Source(rules, first, stage)
        counted[name] = source.count(batches_of(texts), workers)
        first = source.documents
    if first == 0:
        raise DataError("there is no text to count: the texts are empty")
    return WordCounts.of(rules, counted)


class _Source:
    """The words of one source while its texts are counted.

    Attributes:
        documents: The number of texts taken so far, including earlier sources.
    """

    def __init__(self, rules: WordRules, first: int, stage: Stage) -> None:
        self.documents = self._first = first
        self._rules = rules
        self._stage = stage
        self._all = WordTable(with_places=rules.with_places)
        self._idle: queue.LifoQueue[WordCounter] = queue.LifoQueue()
        self._words = self._bytes = 0

    def count(self, batches: Iterator[Batch], workers: int) -> CountedSource:
        """Count batches on threads, and return their words."""
        begun = list(itertools.islice(batches, 2))
        with ExitStack() as stack:
            processes = None
            if self._rules.hold_gil and workers > 1 and len(begun) > 1:
                processes = stack.enter_context(WorkerProcesses(workers))
            threads = ThreadPoolExecutor(workers, "count")
            stack.callback(threads.shutdown, cancel_futures=True)
            waiting: deque[Future[tuple[int, int]]] = deque()
            for batch in itertools.chain(begun, batches):
                if len(waiting) >= _WAITING * workers:
                    self._add(*waiting.popleft().result())
                waiting.append(threads.submit(self._count, batch, self.documents, processes))
                self.documents += len(batch)
            begun.clear()
            for each in waiting:
                self._add(*each.result())
        return CountedSource(self._table(), self.documents - self._first, self._bytes, self._words)

    def _count(
        self, batch: Batch, first: int, processes: WorkerProcesses | None
    ) -> tuple[int, int]:
        """Count a batch; return its words and bytes."""
        if processes is not None:
            texts = batch.to_pylist() if isinstance(batch, pa.Array) else batch
            blocks, words, size = processes.call(count_elsewhere, self._rules, texts, first)
            for block in blocks:
                self._all.add_block(block)
        else:
            try:
                counter = self._idle.get_nowait()
            except queue.Empty:
                counter = WordCounter(self._rules)
            words, size = count_batch(counter, batch, first, self._keep)
            self._idle.put(counter)
        self._stage.advance(len(batch), bytes=size)
        return words, size

    def _keep(self, blocks: Blocks) -> None:
        for _, block in blocks:
            self._all.add_block(block)

    def _add(self, words: int, size: int) -> None:
        self._words += words
        self._bytes += size

    def _table(self) -> pa.Table:
        """Return all words, sorted by their bytes."""
        tables: list[WordTable] = [self._all, *self._idle.queue]
        whole, *others = sorted(tables, key=len, reverse=True)
        for other in others:
            whole.add(other)
            other.clear()
        return pa.Table.from_batches(whole.drain(), schema_of(self._rules.with_places))


def count_batch(
    counter: WordCounter, batch: Batch, first: int, on_full: Any = None
) -> tuple[int, int]:
    """Count a batch of texts.

    Returns:
        The number of words, each occurrence counted, and of bytes of UTF-8.
    """
    limit: dict[str, Any] = {"max_bytes": TABLE_BYTES, "on_full": on_full}
    if isinstance(batch, list):
        return counter.add_text_list(batch, first, **limit)
    places = None
    if counter.with_places:
        import numpy as np

        places = pa.array(np.arange(first, first + len(batch), dtype=np.uint64))
    size = batch.buffers()[1]
    offsets = memoryview(size).cast("q") if size is not None else None
    begin, end = batch.offset, batch.offset + len(batch)
    size = 0 if offsets is None else offsets[end] - offsets[begin]
    return counter.add_texts(batch, places, **limit), size


def count_elsewhere(
    rules: WordRules, texts: list[Any], first: int
) -> tuple[list[pa.RecordBatch], int, int]:
    """Count texts in a worker process.

    Returns:
        The words in blocks; the number of words, each occurrence counted, and of bytes of UTF-8.
    """
    counter = WordCounter(rules)
    words, size = count_batch(counter, texts, first)
    return [block for _, block in counter.blocks(partitions=1)], words, size

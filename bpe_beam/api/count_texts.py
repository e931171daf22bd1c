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
from bpe_beam.counts import word_table
from bpe_beam.counts.manifest import check_sources
from bpe_beam.counts.word_counts import CountedSource, WordCounts
from bpe_beam.errors import DataError
from bpe_beam.progress import Stage
from bpe_beam.workers.processes import WorkerProcesses

TABLE_BYTES = 64_000_000
"""The maximum memory of a thread's table; then its words move to the table of all threads."""

_WAITING = 2  # batches for each thread, counted or waiting


def count_texts(
    rules: word_table.WordRules,
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
        counted[name] = _count_source(rules, batches_of(texts), first, workers, stage)
        first += counted[name].documents
    if first == 0:
        raise DataError("there is no text to count: the texts are empty")
    return WordCounts.of(rules, counted)


def _count_source(
    rules: word_table.WordRules, batches: Iterator[Batch], first: int, workers: int, stage: Stage
) -> CountedSource:
    """Return the words of one source; its first text has the number `first`."""
    all_words = word_table.WordTable(with_places=rules.with_places)
    idle: queue.LifoQueue[word_table.WordCounter] = queue.LifoQueue()
    documents = total = text_bytes = 0

    def keep(blocks: word_table.Blocks) -> None:
        for _, block in blocks:
            all_words.add_block(block)

    def count(batch: Batch, first: int, processes: WorkerProcesses | None) -> tuple[int, int]:
        if processes is not None:
            texts = batch.to_pylist() if isinstance(batch, pa.Array) else batch
            blocks, words, size = processes.call(count_elsewhere, rules, texts, first)
            keep((0, block) for block in blocks)
        else:
            try:
                counter = idle.get_nowait()
            except queue.Empty:
                counter = word_table.WordCounter(rules)
            words, size = count_batch(counter, batch, first, keep)
            idle.put(counter)
        stage.advance(len(batch), bytes=size)
        return words, size

    begun = list(itertools.islice(batches, 2))
    with ExitStack() as stack:
        processes = None
        if rules.hold_gil and workers > 1 and len(begun) > 1:
            processes = stack.enter_context(WorkerProcesses(workers))
        threads = ThreadPoolExecutor(workers, "count")
        stack.callback(threads.shutdown, cancel_futures=True)
        waiting: deque[Future[tuple[int, int]]] = deque()

        def add_first() -> None:
            nonlocal total, text_bytes
            words, size = waiting.popleft().result()
            total += words
            text_bytes += size

        for batch in itertools.chain(begun, batches):
            if len(waiting) >= _WAITING * workers:
                add_first()
            waiting.append(threads.submit(count, batch, first + documents, processes))
            documents += len(batch)
        begun.clear()
        while waiting:
            add_first()
    whole, *others = sorted([all_words, *idle.queue], key=len, reverse=True)
    for other in others:
        whole.add(other)
        other.clear()
    table = pa.Table.from_batches(whole.drain(), word_table.schema_of(rules.with_places))
    return CountedSource(table, documents, text_bytes, total)


def count_batch(
    counter: word_table.WordCounter, batch: Batch, first: int, on_full: Any = None
) -> tuple[int, int]:
    """Count a batch; return the number of words, each occurrence counted, and of UTF-8 bytes."""
    limit: dict[str, Any] = {"max_bytes": TABLE_BYTES, "on_full": on_full}
    if isinstance(batch, list):
        return counter.add_text_list(batch, first, **limit)
    places = None
    if counter.with_places:
        import numpy as np

        places = pa.array(np.arange(first, first + len(batch), dtype=np.uint64))
    return counter.add_texts(batch, places, **limit), word_table.string_bytes(batch)


def count_elsewhere(
    rules: word_table.WordRules, texts: list[Any], first: int
) -> tuple[list[pa.RecordBatch], int, int]:
    """Count texts in a worker process; return the words in blocks, and what `count_batch` does."""
    counter = word_table.WordCounter(rules)
    words, size = count_batch(counter, texts, first)
    return [block for _, block in counter.blocks(partitions=1)], words, size

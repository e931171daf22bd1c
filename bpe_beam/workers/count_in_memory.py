"""Count splits into tables in memory, for a job in one process that needs no counts folder."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from bpe_beam.counts.word_counter import WordRules
from bpe_beam.counts.word_table import WordTable
from bpe_beam.workers import metric_names
from bpe_beam.workers.count_split import CountStats, CountTask, sources_json
from bpe_beam.workers.measured import TaskResult
from bpe_beam.workers.source_tables import SourceBlocks, SourceTables
from bpe_beam.workers.split_reader import SplitReader
from bpe_beam.workers.split_task import task_name


class NotInMemoryError(Exception):
    """The words take too much memory, or a split must be read again: count into a folder."""


class WordsInMemory:
    """The words of all splits, split by several rules. Threads share it.

    Args:
        rules: How texts are split into words; the tables of each are separate.
        max_bytes: The most memory of all tables.

    Attributes:
        tables: The words by source, for each of the rules; see `NO_SOURCE`.
    """

    def __init__(self, rules: Sequence[WordRules], max_bytes: int) -> None:
        self.rules = tuple(rules)
        self.max_bytes = max_bytes
        self.tables: list[dict[str, WordTable]] = [{} for _ in rules]
        self._splits: set[int] = set()
        self._lock = threading.Lock()

    def add(self, split: int, tables: Sequence[SourceTables]) -> None:
        """Add the words of a split, and empty its tables.

        Args:
            split: The number of the split.
            tables: The words, for each of the rules.

        Raises:
            NotInMemoryError: The split is added a second time, or the words take too much memory.
        """
        with self._lock:
            if split in self._splits:
                raise NotInMemoryError
            self._splits.add(split)
            for own, found in zip(self.tables, tables, strict=True):
                for source, table in found.tables():
                    _add(own, source, table)
            if sum(t.memory_bytes for own in self.tables for t in own.values()) > self.max_bytes:
                raise NotInMemoryError


def _add(tables: dict[str, WordTable], source: str, table: WordTable) -> None:
    """Add the words of a source; the smaller table is added to the larger one."""
    own = tables.setdefault(source, table)
    if own is table:
        return
    if len(own) < len(table):
        own, table = table, own
        tables[source] = own
    own.add(table)
    table.clear()


def count_in_memory(task: CountTask, words: WordsInMemory, element: str) -> TaskResult:
    """Count one split, and write its receipt.

    Args:
        task: The job; its rules are the first of the words' rules.
        words: Gets the words.
        element: The split, see `split_tasks`.

    Returns:
        The task's name as the output, and metrics.

    Raises:
        NotInMemoryError: See `WordsInMemory.add`.
        DataError: Storage fails, or there are too many sources.
    """
    tables = [
        SourceTables(rules, task.by_source, max_bytes=words.max_bytes, on_full=_refuse)
        for rules in words.rules
    ]
    split = SplitReader(task.folder, element, task.reading, task.stage)
    number_of_words = 0
    with split.rejects:
        for batch in split.batches():
            number_of_words += tables[0].add(batch)
            for others in tables[1:]:
                others.add(batch)
            split.add(batch)
    number = split.task.split.index
    words.add(number, tables)
    stats = CountStats(
        **split.stats(), words=number_of_words, ranges=[], sources=sources_json(tables[0])
    )
    name = task_name("counts", number, task.splits)
    task.folder.write_receipt(name, split.reject_files(), stats)
    return TaskResult(
        [name],
        {metric_names.WORDS_COUNTED: number_of_words, **split.reject_counts()},
        split.values(),
    )


def _refuse(words: SourceBlocks) -> None:
    raise NotInMemoryError

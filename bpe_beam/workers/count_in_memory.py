"""Count splits into tables in memory, for a job in one process that needs no counts folder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from bpe_beam.counts.word_counter import WordRules
from bpe_beam.counts.word_table import WordTable
from bpe_beam.workers.count_split import CountStats, CountTask, sources_json
from bpe_beam.workers.source_tables import SourceBlocks, SourceTables
from bpe_beam.workers.split_reader import SplitReader
from bpe_beam.workers.split_task import task_name
from bpe_beam.workers.task_results import TaskResult


class NotInMemoryError(Exception):
    """The words take too much memory, or a split must be read again: count into a folder."""


class WordsInMemory:
    """The words of all splits, split by several rules. Threads share it.

    Each thread adds to tables of its own, split after split, so that most words are added once.
    """

    def __init__(self, rules: Sequence[WordRules], max_bytes: int) -> None:
        self.rules = tuple(rules)
        self.max_bytes = max_bytes
        self._idle: list[list[SourceTables]] = []
        self._bytes: dict[int, int] = {}  # of the tables of each thread
        self._splits: set[int] = set()
        self._lock = threading.Lock()

    def begin(self, split: int, by_source: bool) -> list[SourceTables]:
        """Return tables for the words of a split, for each of the rules.

        They may have the words of earlier splits; their totals are of this split.
        """
        with self._lock:
            if split in self._splits:
                raise NotInMemoryError
            self._splits.add(split)
            tables = self._idle.pop() if self._idle else []
        if not tables:
            options: dict[str, Any] = {"max_bytes": self.max_bytes, "on_full": _refuse}
            tables = [SourceTables(rules, by_source, **options) for rules in self.rules]
        for table in tables:
            table.totals = {}
        return tables

    def end(self, tables: list[SourceTables]) -> None:
        """Note that all words of a split are in the tables of `begin`."""
        taken = sum(each.memory_bytes for table in tables for _, each in table.tables())
        with self._lock:
            self._idle.append(tables)
            self._bytes[id(tables)] = taken
            if sum(self._bytes.values()) > self.max_bytes:
                raise NotInMemoryError

    def take(self, rule: int) -> dict[str, WordTable]:
        """Return all words by one of the rules, by source; see `NO_SOURCE`."""
        found: dict[str, WordTable] = {}
        for tables in self._idle:
            for source, table in tables[rule].tables():
                _add(found, source, table)
        return found


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

    Returns:
        The task's name as the output, and metrics.
    """
    split = SplitReader(task, element)
    number = split.task.split.index
    tables = words.begin(number, task.by_source)
    number_of_words = 0
    with split.rejects:
        for batch in split.batches():
            number_of_words += tables[0].add(batch)
            for others in tables[1:]:
                others.add(batch)
            split.add(batch)
    words.end(tables)
    stats = CountStats(
        **split.stats(), words=number_of_words, blocks=[], sources=sources_json(tables[0])
    )
    name = task_name("counts", number, task.splits)
    task.folder.write_receipt(name, split.reject_files(), stats)
    return split.result([name], {"words_counted": number_of_words})


def _refuse(words: SourceBlocks) -> None:
    raise NotInMemoryError

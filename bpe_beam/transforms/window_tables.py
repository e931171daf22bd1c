"""Tables in which a worker adds up a bundle's elements by window before it outputs blocks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import apache_beam as beam
from apache_beam.transforms import trigger

from bpe_beam.counts.packed_words import PairCounts
from bpe_beam.counts.word_counter import WordCounter
from bpe_beam.errors import UsageError, require_between

TABLE_BYTES = 128_000_000
"""The default memory of a worker's tables, in bytes."""

UNBOUNDED_SECONDS = 2.0
"""Maximum time that tables of unbounded input wait, if a runner's bundle lasts longer."""


T = TypeVar("T", bound=WordCounter | PairCounts)


class WindowTables(Generic[T]):
    """A table for each window of a bundle, until the tables take too much memory or time."""

    def __init__(self, make: Callable[[], T], table_bytes: int, max_seconds: float | None) -> None:
        self._make = make
        self._table_bytes = table_bytes
        self._max_seconds = max_seconds
        self._tables: dict[Any, T] = {}
        self._since = time.monotonic()

    def table(self, window: Any) -> T:
        """Return the table of a window; a new one for a window not seen yet."""
        if window not in self._tables:
            self._tables[window] = self._make()
        return self._tables[window]

    @property
    def is_full(self) -> bool:
        """Whether the tables must be written out."""
        # The age, not the number of windows: an empty table has a size too, and many small windows
        # must not be written out at every element.
        if self._max_seconds is not None and time.monotonic() - self._since > self._max_seconds:
            return True
        return sum(table.memory_bytes for table in self._tables.values()) > self._table_bytes

    def take(self) -> list[tuple[Any, T]]:
        """Return the windows and their tables, and begin anew without tables."""
        tables, self._tables = self._tables, {}
        self._since = time.monotonic()
        return list(tables.items())


def tables_of(
    make: Callable[[], T], table_bytes: int, elements: beam.pvalue.PCollection, transform: str
) -> Callable[[], WindowTables[T]]:
    """Return a function that makes the tables of a bundle."""
    if elements.windowing.accumulation_mode == trigger.AccumulationMode.ACCUMULATING:
        raise UsageError(
            f"{transform}: the windows accumulate panes, so that the sum of panes would count "
            "elements again; use accumulation_mode=AccumulationMode.DISCARDING"
        )
    max_seconds = None if elements.is_bounded else UNBOUNDED_SECONDS
    return partial(WindowTables, make, table_bytes, max_seconds)


def check_table_bytes(table_bytes: int) -> None:
    """Refuse a memory limit of a worker's tables below 1,000,000 bytes."""
    require_between("table_bytes", table_bytes, 1_000_000, sys.maxsize)

"""Counting into one table, or into one a source; and batches of documents cut by source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe_beam.counts.manifest import check_sources
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.splits.work import text_bytes

NO_SOURCE = ""
"""The source of words that are counted without sources; no real one has this name."""


class SourceTables:
    """The words of documents, in one table or in one a source.

    Attributes:
        facts: `documents`, `text_bytes` and `words` of each source so far.
    """

    def __init__(self, counting: Mapping[str, Any], by_source: bool) -> None:
        """Makes it empty.

        Args:
            counting: Settings of `WordCounts`.
            by_source: A table for each value of the column `source`.
        """
        self.counting = counting
        self.by_source = by_source
        self.facts: dict[str, dict[str, int]] = {}
        self._tables: dict[str, WordCounts] = {}
        if not by_source:
            self._tables[NO_SOURCE] = WordCounts(**counting)

    @property
    def memory_bytes(self) -> int:
        """Bytes that all tables hold."""
        return sum(table.memory_bytes for table in self._tables.values())

    def add(self, batch: pa.RecordBatch) -> int:
        """Counts a batch of documents.

        Returns:
            How many words it has.

        Raises:
            DataError: There are too many sources.
        """
        pieces = cut_by_source(batch) if self.by_source else [(NO_SOURCE, batch)]
        return sum(self._add(source, piece) for source, piece in pieces)

    def _add(self, source: str, batch: pa.RecordBatch) -> int:
        if source not in self._tables:
            check_sources([*self.facts, source])
            self._tables[source] = WordCounts(**self.counting)
        table = self._tables[source]
        words = table.add_texts(
            batch.column("text"), batch.column("place") if table.with_places else None
        )
        add_facts(
            self.facts,
            source,
            {"documents": batch.num_rows, "text_bytes": text_bytes(batch), "words": words},
        )
        return words

    def tables(self) -> Iterator[tuple[str, WordCounts]]:
        """The tables, in the order of their sources' names."""
        yield from sorted(self._tables.items())


def add_facts(sums: dict[str, dict[str, int]], source: str, facts: Mapping[str, int]) -> None:
    """Adds facts of a source to what is known of it."""
    known = sums.setdefault(source, dict.fromkeys(facts, 0))
    for name, value in facts.items():
        known[name] += value


def add_token_facts(
    sums: dict[str, dict[str, int]], batch: pa.RecordBatch, ends: npt.NDArray[np.int64]
) -> None:
    """Adds what a batch of documents has of each source to what is known of it.

    Args:
        sums: `documents`, `text_bytes` and `tokens` by source.
        batch: The documents.
        ends: int64[documents + 1], where the tokens of each begin, and those of the last end.

    Raises:
        DataError: There are too many sources.
    """
    column = batch.column("source").dictionary_encode()
    codes, names = column.indices.to_numpy(), column.dictionary.to_pylist()
    sizes = pc.binary_length(batch.column("text")).to_numpy()
    rows = np.zeros((3, len(names)), np.int64)
    for row, values in zip(rows, (1, sizes, np.diff(ends)), strict=True):
        np.add.at(row, codes, values)
    for name, (documents, size, tokens) in zip(names, rows.T.tolist(), strict=True):
        facts = {"documents": documents, "text_bytes": size, "tokens": tokens}
        add_facts(sums, name, facts)
    check_sources(sums)


def cut_by_source(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    """The documents of each source, in the order of their names; each in the batch's order.

    Cost: a look at each name; where there are several, the batch is copied once.
    """
    column = batch.column("source").dictionary_encode()
    names = column.dictionary.to_pylist()
    if len(names) == 1:
        return [(names[0], batch)]
    codes = column.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    whole = batch.take(pa.array(order))
    return [
        (names[code], whole.slice(start, end - start))
        for code, start, end in sorted(
            zip(range(len(names)), [0, *ends[:-1].tolist()], ends.tolist(), strict=True),
            key=lambda row: names[row[0]],
        )
    ]

"""Word tables, one for all documents or one a source, and the totals of each source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam.counts.manifest import check_sources
from bpe_beam.counts.word_table import PARTITIONS, WordCounter, WordRules
from bpe_beam.workers.split_task import text_bytes_of

SourceBlocks = Mapping[str, list[tuple[int, pa.RecordBatch]]]
"""Blocks of words with their partitions, by source, sorted by name."""

NO_SOURCE = ""  # the source of words that are counted without sources; no real source has this name


class SourceTables:
    """The words of documents, in one table or in one a source, together within a limit."""

    def __init__(
        self,
        rules: WordRules,
        by_source: bool,
        *,
        max_bytes: int,
        on_full: Callable[[SourceBlocks], None] | None = None,
        partitions: int = PARTITIONS,
    ) -> None:
        self._max_bytes = max_bytes
        self._partitions = partitions
        self._full: list[SourceBlocks] = []
        self._on_full = on_full or self._full.append
        self._sizes: dict[str, int] = {}  # the memory of each table
        self._total = 0
        self.rules = rules
        self.by_source = by_source
        # `documents`, `text_bytes` and `words` of each source so far.
        self.totals: dict[str, Counter[str]] = {}
        self._tables: dict[str, WordCounter] = {}
        if not by_source:
            self._tables[NO_SOURCE] = WordCounter(rules)

    @property
    def memory_bytes(self) -> int:
        """The memory that the tables take now."""
        return self._total

    def take_full(self) -> list[SourceBlocks]:
        """Return the words of tables that became full since the last call, without `on_full`."""
        taken = list(self._full)
        self._full.clear()
        return taken

    def take(self, but: str | None = None) -> dict[str, list[tuple[int, pa.RecordBatch]]]:
        """Empty the tables of all sources but one, and return their words."""
        taken = {}
        for name, table in self.tables():
            if name != but:
                taken[name] = list(table.blocks(self._partitions))
                table.clear()
        self._sizes.clear()
        self._total = 0
        return taken

    def add(self, batch: pa.RecordBatch) -> int:
        """Count a batch of documents, and return the number of its words."""
        rows = divide_by_source(batch) if self.by_source else [(NO_SOURCE, batch)]
        return sum(self._add(source, documents) for source, documents in rows)

    def _add(self, source: str, batch: pa.RecordBatch) -> int:
        table = self._table(source)

        def hand_over(blocks: Iterator[tuple[int, pa.RecordBatch]]) -> None:
            """Report the words of this table, and of all other tables."""
            taken = {**self.take(but=source), source: list(blocks)}
            self._on_full(dict(sorted(taken.items())))

        places = batch.column("place") if table.with_places else None
        room = self._room(source)
        words = table.add_texts(
            batch.column("text"),
            places,
            max_bytes=room,
            on_full=hand_over,
            partitions=self._partitions,
        )
        self._note_size(source)
        amounts = {"documents": batch.num_rows, "text_bytes": text_bytes_of(batch), "words": words}
        self.totals.setdefault(source, Counter()).update(amounts)
        return words

    def add_all_of(self, other: SourceTables) -> None:
        """Add the words and the totals of other tables, whatever the limit."""
        for source, totals in other.totals.items():
            self._table(source).add(other._tables[source])
            self._note_size(source)
            self.totals.setdefault(source, Counter()).update(totals)

    def clear(self) -> None:
        """Remove all words and totals."""
        for source in self.totals:
            self._tables[source].clear()
        self.totals.clear()
        self._sizes.clear()
        self._total = 0

    def _table(self, source: str) -> WordCounter:
        """Return the table of a source, a new one for a new source."""
        if source not in self._tables:
            check_sources([*self.totals, source])
            self._tables[source] = WordCounter(self.rules)
        return self._tables[source]

    def _note_size(self, source: str) -> None:
        """Add the growth of a source's table to the memory of all tables."""
        size = self._tables[source].memory_bytes
        self._total += size - self._sizes.get(source, 0)
        self._sizes[source] = size

    def _room(self, source: str) -> int:
        """Return the memory for the table of a source: the rest of the limit, at least half of
        it."""
        others = self._total - self._sizes.get(source, 0)
        if others > self._max_bytes // 2:
            self._on_full(self.take())
            others = 0
        return self._max_bytes - others

    def tables(self) -> Iterator[tuple[str, WordCounter]]:
        """Yield the tables, sorted by source."""
        yield from sorted(self._tables.items())


def add_token_totals(
    totals: dict[str, Counter[str]], batch: pa.RecordBatch, offsets: npt.NDArray[np.int64]
) -> None:
    """Add the documents, bytes and tokens of a batch to the totals of their sources.

    `offsets`, int64[documents + 1], has the first token of each document and the end of the last.
    """
    import pyarrow.compute as pc  # slow to import: only with sources

    column = batch.column("source").dictionary_encode()
    codes, names = column.indices.to_numpy(), column.dictionary.to_pylist()
    sizes = (
        pc.binary_length(batch.column("text")).to_numpy()
        if "text" in batch.schema.names
        else batch.column("text_bytes").to_numpy()
    )
    rows = np.zeros((3, len(names)), np.int64)
    for row, values in zip(rows, (1, sizes, np.diff(offsets)), strict=True):
        np.add.at(row, codes, values)
    for name, (documents, size, tokens) in zip(names, rows.T.tolist(), strict=True):
        amounts = {"documents": documents, "text_bytes": size, "tokens": tokens}
        totals.setdefault(name, Counter()).update(amounts)
    check_sources(totals)


def divide_by_source(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    """Return the documents of each source, sorted by source; each in the batch's order.

    Cost: compares each name; with several sources the batch is copied once.
    """
    column = batch.column("source").dictionary_encode()
    names = column.dictionary.to_pylist()
    if len(names) == 1:
        return [(names[0], batch)]
    codes = column.indices.to_numpy()
    whole = batch.take(pa.array(np.argsort(codes, kind="stable")))
    counts = np.bincount(codes, minlength=len(names))
    starts = np.cumsum(counts) - counts
    rows = zip(names, starts.tolist(), counts.tolist(), strict=True)
    return [(name, whole.slice(start, count)) for name, start, count in sorted(rows)]

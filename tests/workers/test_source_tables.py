"""Batches cut by source, and a table for each."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from bpe_beam.corpus.batches import BATCH_SCHEMA
from bpe_beam.counts.manifest import MAX_SOURCES
from bpe_beam.counts.word_table import WordRules
from bpe_beam.errors import DataError
from bpe_beam.workers.count_split import block_references
from bpe_beam.workers.source_tables import SourceTables, add_token_totals, divide_by_source

RULES = WordRules(pretokenizer="whitespace_split")


def batch_of(rows: list[tuple[str, str]]) -> pa.RecordBatch:
    """Documents (source, text), their places rising."""
    sources, texts = (list(column) for column in zip(*rows, strict=True))
    return pa.record_batch(
        [[None] * len(rows), sources, list(range(7, 7 + len(rows))), texts], schema=BATCH_SCHEMA
    )


ROWS = [("zh", "一 二"), ("en", "one two two"), ("zh", "二"), ("größe", ""), ("en", "two")]


def test_cut_in_the_order_of_names_and_of_the_batch() -> None:
    pieces = divide_by_source(batch_of(ROWS))
    assert [name for name, _ in pieces] == ["en", "größe", "zh"]
    for name, piece in pieces:
        assert piece.schema == BATCH_SCHEMA
        assert piece["text"].to_pylist() == [text for source, text in ROWS if source == name]
        assert piece["place"].to_pylist() == [
            7 + i for i, (source, _) in enumerate(ROWS) if source == name
        ]


def test_the_order_of_a_large_batch_stays() -> None:
    """Places must rise within a source."""
    made = random.Random(6)
    rows = [(made.choice("abcdefg"), f"{i}") for i in range(3000)]
    for name, piece in divide_by_source(batch_of(rows)):
        assert piece["text"].to_pylist() == [text for source, text in rows if source == name]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_slice_of_a_batch(start: int) -> None:
    """Offsets that do not begin at 0, in every column."""
    whole = batch_of([("x", "never"), *ROWS, ("x", "never")])
    batch = whole.slice(1 + start, len(ROWS) - start)
    found = {name: piece["text"].to_pylist() for name, piece in divide_by_source(batch)}
    expected: dict[str, list[str]] = {}
    for source, text in ROWS[start:]:
        expected.setdefault(source, []).append(text)
    assert found == expected


def test_a_batch_of_one_source_is_not_copied() -> None:
    batch = batch_of([("a", "x"), ("a", "y")])
    ((name, piece),) = divide_by_source(batch)
    assert name == "a"
    assert piece is batch


@pytest.mark.parametrize("by_source", [False, True])
def test_tables_and_facts(by_source: bool) -> None:
    tables = SourceTables(RULES, by_source, max_bytes=1 << 40, on_full=pytest.fail)
    assert tables.add(batch_of(ROWS)) == 7
    assert tables.add(batch_of(ROWS[:1])) == 2
    twin: dict[str, Counter[str]] = {}
    for source, text in [*ROWS, ROWS[0]]:
        twin.setdefault(source if by_source else "", Counter()).update(text.split())
    found = {
        source: {
            word: count
            for _, block in table.blocks(1)
            for word, count in zip(*(c.to_pylist() for c in block.columns), strict=True)
        }
        for source, table in tables.tables()
    }
    assert found == twin
    assert list(found) == sorted(found)
    assert sum(row["documents"] for row in tables.totals.values()) == 6
    assert {name: row["words"] for name, row in tables.totals.items()} == {
        name: words.total() for name, words in twin.items()
    }


def test_too_many_sources_name_the_option() -> None:
    rows = [(f"s{i:04}", "x") for i in range(MAX_SOURCES)]
    tables = SourceTables(RULES, True, max_bytes=1 << 40, on_full=pytest.fail)
    tables.add(batch_of(rows))
    tables.add(batch_of(rows))
    with pytest.raises(DataError, match=r"more than 1,000 sources.*source_field"):
        tables.add(batch_of([("one more", "x")]))
    sums: dict[str, dict[str, int]] = {}
    batch = batch_of([*rows, ("one more", "x")])
    with pytest.raises(DataError, match=r"more than 1,000 sources.*source_field"):
        add_token_totals(sums, batch, np.arange(len(batch) + 1))


def test_token_facts() -> None:
    sums: dict[str, dict[str, int]] = {}
    whole = batch_of([("x", "never"), *ROWS])
    for _ in range(2):
        add_token_totals(sums, whole.slice(1), np.array([100, 102, 105, 106, 106, 107]))
    assert sums == {
        "zh": {"documents": 4, "text_bytes": 2 * 10, "tokens": 6},
        "en": {"documents": 4, "text_bytes": 2 * 14, "tokens": 8},
        "größe": {"documents": 2, "text_bytes": 0, "tokens": 0},
    }


def test_places_by_partition() -> None:
    assert list(block_references("a", "0f", [[1, 0, 10], [2, 10, 5]])) == [
        (1, ("a", "0f", 0, 10)),
        (2, ("a", "0f", 10, 5)),
    ]

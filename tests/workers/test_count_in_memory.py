"""Words of splits in memory: added up, and refused where they are too many or come twice."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bpe_beam.counts.word_counter import WordRules
from bpe_beam.workers.count_in_memory import NotInMemoryError, WordsInMemory
from bpe_beam.workers.source_tables import NO_SOURCE, SourceTables

RULES = (WordRules(), WordRules(pretokenizer="whitespace_split"))


def add(tables: list[SourceTables], text: str) -> None:
    batch = pa.record_batch({"text": pa.array([text], pa.large_string())})
    for table in tables:
        table.add(batch)


def words_of(words: WordsInMemory, number: int) -> dict[str, int]:
    rows = words.take(number)[NO_SOURCE].unsorted().to_pylist()
    return {row["word"]: row["count"] for row in rows}


def test_words_of_splits_are_added_up_by_each_of_the_rules() -> None:
    """Of splits at once, which have tables of their own, and of one after another."""
    words = WordsInMemory(RULES, 1 << 30)
    first, second = words.begin(3, False), words.begin(1, False)
    assert first is not second
    add(first, "a b")
    add(second, "b b c d longer_than_fifteen_bytes")
    words.end(first)
    words.end(second)
    third = words.begin(2, False)
    assert third is second
    assert third[0].totals == {}
    add(third, "a")
    assert third[0].totals[NO_SOURCE]["words"] == 1
    words.end(third)
    assert words_of(words, 1) == {"a": 2, "b": 3, "c": 1, "d": 1, "longer_than_fifteen_bytes": 1}
    found = words_of(words, 0)
    assert (found["a"], found[" b"]) == (2, 2)


def test_sources_are_apart() -> None:
    words = WordsInMemory(RULES, 1 << 30)
    for split, source in enumerate("xyx"):
        tables = words.begin(split, True)
        columns = {"text": pa.array(["a"], pa.large_string()), "source": [source]}
        for table in tables:
            table.add(pa.record_batch(columns))
        assert tables[0].totals.keys() == {source}
        words.end(tables)
    found = {source: table.unsorted().to_pylist() for source, table in words.take(0).items()}
    assert {source: row["count"] for source, (row,) in found.items()} == {"x": 2, "y": 1}


def test_a_split_that_comes_twice_or_takes_too_much_is_refused() -> None:
    words = WordsInMemory(RULES, 1 << 30)
    words.end(words.begin(0, False))
    with pytest.raises(NotInMemoryError):
        words.begin(0, False)
    small = WordsInMemory(RULES, 60_000)
    tables = small.begin(0, False)
    small.end(tables)
    again = small.begin(1, False)
    with pytest.raises(NotInMemoryError):
        small.end(small.begin(2, False))
    assert again is tables

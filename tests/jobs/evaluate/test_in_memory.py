"""Words of splits in memory: added up, and refused where they are too many or come twice."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bpe_beam.counts.word_table import WordRules
from bpe_beam.jobs.evaluate.texts import NotInMemoryError, WordsInMemory
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
    with words.tables(3, False) as first, words.tables(1, False) as second:
        assert first is not second
        add(first, "a b")
        add(second, "b b c d longer_than_fifteen_bytes")
    with words.tables(2, False) as third:
        assert third is first
        assert third[0].totals == {}
        add(third, "a")
        assert third[0].totals[NO_SOURCE]["words"] == 1
    assert words_of(words, 1) == {"a": 2, "b": 3, "c": 1, "d": 1, "longer_than_fifteen_bytes": 1}
    found = words_of(words, 0)
    assert (found["a"], found[" b"]) == (2, 2)


def test_sources_are_apart() -> None:
    words = WordsInMemory(RULES, 1 << 30)
    for split, source in enumerate("xyx"):
        with words.tables(split, True) as tables:
            columns = {"text": pa.array(["a"], pa.large_string()), "source": [source]}
            for table in tables:
                table.add(pa.record_batch(columns))
            assert tables[0].totals.keys() == {source}
    found = {source: table.unsorted().to_pylist() for source, table in words.take(0).items()}
    assert {source: row["count"] for source, (row,) in found.items()} == {"x": 2, "y": 1}


def test_a_split_that_comes_twice_or_takes_too_much_is_refused() -> None:
    words = WordsInMemory(RULES, 1 << 30)
    with words.tables(0, False):
        pass
    with pytest.raises(NotInMemoryError), words.tables(0, False):
        pass
    small = WordsInMemory(RULES, 60_000)
    with small.tables(0, False):
        pass
    with pytest.raises(NotInMemoryError), small.tables(1, False), small.tables(2, False):
        pass

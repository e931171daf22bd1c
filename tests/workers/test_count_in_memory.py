"""Words of splits in memory: added up, and refused where they are too many or come twice."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bpe_beam.counts.word_counter import WordRules
from bpe_beam.workers.count_in_memory import NotInMemoryError, WordsInMemory
from bpe_beam.workers.source_tables import NO_SOURCE, SourceTables

RULES = (WordRules(), WordRules(pretokenizer="whitespace_split"))


def tables_of(text: str) -> list[SourceTables]:
    batch = pa.record_batch({"text": pa.array([text], pa.large_string())})
    found = [
        SourceTables(rules, False, max_bytes=1 << 40, on_full=lambda _: None) for rules in RULES
    ]
    for tables in found:
        tables.add(batch)
    return found


def words_of(words: WordsInMemory, number: int) -> dict[str, int]:
    rows = words.tables[number][NO_SOURCE].unsorted().to_pylist()
    return {row["word"]: row["count"] for row in rows}


def test_words_of_splits_are_added_up_by_each_of_the_rules() -> None:
    words = WordsInMemory(RULES, 1 << 30)
    words.add(3, tables_of("a b"))
    words.add(1, tables_of("b b c d longer_than_fifteen_bytes"))
    words.add(2, tables_of("a"))
    assert words_of(words, 1) == {"a": 2, "b": 3, "c": 1, "d": 1, "longer_than_fifteen_bytes": 1}
    assert words_of(words, 0)["a"] == 2
    assert words_of(words, 0)[" b"] == 2


def test_a_split_that_comes_twice_or_takes_too_much_is_refused() -> None:
    words = WordsInMemory(RULES, 1 << 30)
    words.add(0, tables_of("a"))
    with pytest.raises(NotInMemoryError):
        words.add(0, tables_of("a"))
    with pytest.raises(NotInMemoryError):
        WordsInMemory(RULES, 1_000).add(0, tables_of("a"))

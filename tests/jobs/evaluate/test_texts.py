"""Words in memory are added up or refused; their figures equal the figures of a counts folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from command_line import run, run_whole
from counted_sources import SOURCES, evaluated, write_corpus

from bpe_beam import Tokenizer
from bpe_beam.counts.word_table import WordRules
from bpe_beam.jobs.evaluate import texts as room
from bpe_beam.jobs.evaluate.texts import NotInMemoryError, Texts, WordsInMemory
from bpe_beam.shards.token_counts import SourceCounts
from bpe_beam.workers.source_tables import NO_SOURCE, SourceTables


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, and a tokenizer trained on it."""
    root = tmp_path_factory.mktemp("in-memory")
    write_corpus(root / "corpus")
    arguments = ("--vocab-size", "300", "--special-token", "<s>", "--output", root / "tok-300")
    run_whole("train", "--input", root / "corpus", *arguments)
    return root


@pytest.mark.slow
def test_words_in_memory_have_the_figures_of_a_folder(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns = {"own": "o200k", "again": "o200k", "digits": "llama3"}
    for name, pattern in patterns.items():
        size = 280 if name == "again" else 300
        arguments = ("--vocab-size", size, "--pretokenizer", pattern, "--output", tmp_path / name)
        run_whole("train", "--input", made / "corpus", *arguments)
    run_whole("train", "--input", made / "corpus", "--vocab-size", "290", "--pretokenizer",
        "regex:[a-z]+|[^a-z]+", "--output", tmp_path / "regex")  # fmt: skip
    folders = [made / "tok-300", *(tmp_path / name for name in (*patterns, "regex"))]
    passes: list[str] = []
    tokens_of = Texts.tokens

    def in_a_pass(corpus: Texts, tokenizer: Tokenizer) -> Iterator[SourceCounts]:
        passes.append(tokenizer.fingerprint)
        return tokens_of(corpus, tokenizer)

    monkeypatch.setattr(Texts, "tokens", in_a_pass)
    for sources in ((), SOURCES):
        arguments = ("--input", made / "corpus", *sources, "--tokenizer", *folders)
        expected = evaluated(*arguments, "--work", tmp_path / f"work-{len(sources)}")
        assert all(one["exact"] for one in expected["tokenizers"])
        passes.clear()
        assert evaluated(*arguments, "--range-bytes", "2KB", "--workers", "3") == expected
        assert len(passes) == 1  # of the pattern without a name
        for limit in ("MAX_STORED_BYTES", "TABLE_BYTES"):
            with monkeypatch.context() as patch:
                patch.setattr(room, limit, 1_000)
                passes.clear()
                assert evaluated(*arguments) == expected
                assert len(passes) == 4
    page, of_folder = tmp_path / "page.html", tmp_path / "folder.html"
    run_whole("evaluate", *arguments, "--output", page)
    work = ("--work", tmp_path / f"work-{len(SOURCES)}")
    run_whole("evaluate", *arguments, *work, "--output", of_folder)
    assert page.read_bytes() == of_folder.read_bytes()


def test_a_corpus_that_is_counted_in_memory_is_checked(made: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "the"}\nno JSON\n')
    arguments = ("evaluate", "--input", tmp_path / "bad.jsonl", "--tokenizer", made / "tok-300")
    ran = run(*arguments)
    assert ran.code != 0
    assert "reject" in ran.err
    assert run(*arguments, "--max-rejects", "100%").code == 0


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

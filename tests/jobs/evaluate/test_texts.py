"""Words counted in memory: the figures of `evaluate` are those of a counts folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run, run_whole
from counted_sources import SOURCES, write_corpus

from bpe_beam import Tokenizer
from bpe_beam.jobs.evaluate import texts as room
from bpe_beam.jobs.evaluate.texts import Texts
from bpe_beam.shards.token_counts import SourceCounts


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, and a tokenizer trained on it."""
    root = tmp_path_factory.mktemp("in-memory")
    write_corpus(root / "corpus")
    arguments = ("--vocab-size", "300", "--special-token", "<s>", "--output", root / "tok-300")
    run_whole("train", "--input", root / "corpus", *arguments)
    return root


def evaluated(*arguments: object) -> Any:
    ran = run("evaluate", *arguments)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


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

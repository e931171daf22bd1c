"""What is evaluated: texts by any tokenizer, and tokens folders, against slow counts."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import run, run_whole
from counted_sources import SOURCES, TEXTS, count, evaluated, write_corpus
from read_back import read_shards

from bpe_beam import Tokenizer


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, its counts by source, and a tokenizer trained from them."""
    root = tmp_path_factory.mktemp("evaluated")
    write_corpus(root / "corpus")
    count(root / "corpus", root / "counts", tuple(TEXTS), *SOURCES)
    arguments = ("--vocab-size", "300", "--special-token", "<s>", "--output", root / "tok-300")
    run_whole("train", "--counts", root / "counts", *arguments)
    return root


def report(made: Path, *extra: object) -> Any:
    return evaluated("--counts", made / "counts", *extra)


def slow_entropy(counts: Counter[int]) -> float:
    return -sum(
        count / counts.total() * math.log2(count / counts.total()) for count in counts.values()
    )


def test_a_tokens_folder_has_the_figures_of_its_ids(made: Path, tmp_path: Path) -> None:
    for name, extra in {"plain": (), "sequences": ("--sequence-length", "64")}.items():
        tokens = tmp_path / name
        arguments = ("--input", made / "corpus", "--tokenizer", made / "tok-300", *extra)
        run_whole("tokenize", *arguments, "--output", tokens)
        (one,) = evaluated("--tokens", tokens)["tokenizers"]
        ids = Counter(token for document in read_shards(tokens) for token in document)
        total = one["figures"]["total"]
        assert (one["name"], one["exact"], total["words"]) == (name, True, 0)
        assert total["tokens"] == ids.total()
        assert total["vocabulary_used"] == len(ids)
        assert total["entropy"] == pytest.approx(slow_entropy(ids))
        assert total["tokens_per_word"] is total["characters_per_token"] is None
        text_bytes = sum(path.stat().st_size for path in (made / "corpus").iterdir())
        assert (total["bytes_per_token"] or 0) * ids.total() <= text_bytes


def test_token_counts_by_source(made: Path, tmp_path: Path) -> None:
    arguments = ("--input", made / "corpus", *SOURCES, "--tokenizer", made / "tok-300")
    run_whole("tokenize", *arguments, "--output", tmp_path / "tokens")
    ran = run("evaluate", "--tokens", tmp_path / "tokens", "--progress", "json")
    (of_ids,) = json.loads(ran.out)["tokenizers"]
    *_, last = (json.loads(line) for line in ran.err.splitlines() if line.startswith("{"))
    assert last["done"] == last["total"] > 0
    assert "words" not in ran.err
    page = run("evaluate", "--tokens", tmp_path / "tokens", "--format", "html").out
    assert b'<th scope="row">Tokens</th>' in page
    assert b'<th scope="row">Words</th>' not in page
    (of_words,) = report(made, "--tokenizer", made / "tok-300")["tokenizers"]
    for source, figures in of_words["figures"]["sources"].items():
        for name in ("tokens", "entropy", "renyi_efficiency", "single_byte_tokens"):
            assert of_ids["figures"]["sources"][source][name] == figures[name], (source, name)
    assert of_ids["unused"]["never_used"] == of_words["unused"]["never_used"]


def test_texts_are_evaluated_exactly_by_any_tokenizer(made: Path, tmp_path: Path) -> None:
    run_whole("train", "--input", made / "corpus", "--vocab-size", "290", "--pretokenizer",
        "whitespace_split", "--symbols", "bytes", "--output", tmp_path / "other")  # fmt: skip
    arguments = ("--input", made / "corpus", *SOURCES, "--tokenizer", made / "tok-300")
    work = ("--work", tmp_path / "work", "--range-bytes", "2KB")
    found = evaluated(*arguments, tmp_path / "other", *work)
    same, other = found["tokenizers"]
    assert (same["exact"], other["exact"]) == (True, True)
    assert same == report(made, "--tokenizer", made / "tok-300")["tokenizers"][0]
    tokenizer = Tokenizer.from_file(str(tmp_path / "other" / "tokenizer.json"))
    for source, pattern in {"en": "en*", "zh": "zh*"}.items():
        texts = [
            line
            for path in sorted((made / "corpus").glob(pattern))
            for line in path.read_text("utf-8").removesuffix("\n").split("\n")
        ]
        ids = Counter(token for text in texts for token in tokenizer.encode(text))
        figures = other["figures"]["sources"][source]
        assert figures["tokens"] == ids.total()
        assert figures["entropy"] == pytest.approx(slow_entropy(ids))
        assert figures["words"] == same["figures"]["sources"][source]["words"]
    assert evaluated(*arguments, tmp_path / "other", *work) == found
    runner = ("--runner", "FnApiRunner", "--work", tmp_path / "beam")
    assert evaluated(*arguments, tmp_path / "other", *runner) == found

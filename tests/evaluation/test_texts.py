"""`Tokenizer.evaluate` on texts and on counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import reference_evaluation as reference
from command_line import run_whole
from made_text import write
from msgspec.structs import replace
from reference_encoding import pretokenize
from small_tokenizers import SAMPLE, learn

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.evaluation import texts
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.pretokenizers import ByteLevelPreTokenizer

TEXTS = SAMPLE.splitlines(keepends=True)
TOKENIZER = learn("bytes", ("<s>",), 120)


def test_texts_against_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Counter(word for text in TEXTS for word in pretokenize(text))

    def encode(word: str) -> list[str]:
        return reference.tokens_made(byte_level.to_chars(word.encode()), TOKENIZER.merges)[0]

    expected = reference.metrics(words, encode, len(TOKENIZER), byte_level.to_bytes)
    found = TOKENIZER.evaluate(iter(TEXTS), vocab_sizes=[300])
    for name, value in expected.items():
        assert found["figures"]["total"][name] == pytest.approx(value, rel=1e-12), name
    assert [one["vocab_size"] for one in found["curve"]] == [300]
    monkeypatch.setattr(texts, "_BATCH_CHARACTERS", 10)
    assert TOKENIZER.evaluate(TEXTS, vocab_sizes=[300]) == found


def test_tokens_of_texts_are_exact_for_any_pre_tokenizer() -> None:
    # Its only merge crosses the boundaries of the words that are counted.
    across = Tokenizer.from_learned([*byte_level.BYTE_TO_CHAR, "e\u0120"], [("e", "\u0120")])
    whole = ByteLevelPreTokenizer(use_regex=False)
    tokenizer = Tokenizer(replace(across.spec, pre_tokenizer=whole))
    tokens = sum(len(tokenizer.encode(text)) for text in TEXTS)
    for pretokenizer, words in (
        ("gpt2", sum(len(pretokenize(text)) for text in TEXTS)),
        ("none", len(TEXTS)),
    ):
        found = tokenizer.evaluate(TEXTS, pretokenizer=pretokenizer)
        total = found["figures"]["total"]
        assert found["exact"]
        assert (total["tokens"], total["words"]) == (tokens, words)
        assert tokens < total["bytes"] == len("".join(TEXTS).encode())


def test_counts_give_the_figures_of_their_texts(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", [text.removesuffix("\n") for text in TEXTS])
    run_whole("count", "--input", tmp_path / "a.txt", "--output", tmp_path / "counts")
    found = TOKENIZER.evaluate(str(tmp_path / "counts"))
    lines = [text.removesuffix("\n") for text in TEXTS]
    assert found == TOKENIZER.evaluate([line for line in lines if line])
    assert found == TOKENIZER.evaluate(bpe_beam.count(lines))


def test_counts_in_memory_have_the_figures_of_their_folder_by_source(tmp_path: Path) -> None:
    for name, text in zip("ab", TEXTS, strict=False):
        write(tmp_path / f"{name}.jsonl", [text])
    sources = ("--source", "a=a.jsonl", "--source", "b=b.jsonl")
    counts = tmp_path / "counts"
    run_whole("count", "--input", f"{tmp_path}/*.jsonl", *sources, "--output", counts)
    in_memory = bpe_beam.count({"a": TEXTS[:1], "b": TEXTS[1:2]})
    assert TOKENIZER.evaluate(in_memory) == TOKENIZER.evaluate(str(counts))


def test_wrong_arguments() -> None:
    with pytest.raises(UsageError, match="text 1 must be a str, got int"):
        TOKENIZER.evaluate(["a", 1])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="got a single text"):
        TOKENIZER.evaluate(b"ab")
    with pytest.raises(UsageError, match="UTF-8"):
        TOKENIZER.evaluate(["\ud800"])
    with pytest.raises(UsageError, match="vocab_sizes"):
        TOKENIZER.evaluate(["a"], vocab_sizes=[9])

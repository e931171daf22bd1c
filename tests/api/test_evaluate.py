"""`Tokenizer.evaluate` on texts and on counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import reference_evaluation as reference
from command_line import run_whole
from made_text import write
from msgspec.structs import replace
from reference_encoding import pretokenize
from small_tokenizers import SAMPLE, learn

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.api import text_batches
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.pretokenizers import ByteLevelPreTokenizer

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
    monkeypatch.setattr(text_batches, "BATCH_CHARACTERS", 10)
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
    found = TOKENIZER.evaluate(tmp_path / "counts")
    assert found == TOKENIZER.evaluate(str(tmp_path / "counts"))
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
    kinds = "must be texts, counts, or the path of a counts folder"
    for argument, message in {
        ("a", 1): "text 1 must be str or bytes, got int",
        b"ab": f"texts_or_counts {kinds}, got bytes",
        None: f"texts_or_counts {kinds}, got None",
        5: f"texts_or_counts {kinds}, got int",
        (Path("a"),): f"{kinds}, got a list of paths; .* count them with bpe_beam.count",
        (__file__, "b"): "texts_or_counts is a list of str, .* names a file",
        Path("missing"): "missing is no counts folder",
    }.items():
        with pytest.raises(UsageError, match=message):
            TOKENIZER.evaluate(argument)
    for own in ("a", bpe_beam.count(["a"]), 5):
        with pytest.raises(UsageError, match=r"^texts_or_counts must"):
            TOKENIZER.evaluate({"en": own})
    with pytest.raises(DataError, match=r"text 1: .*lone surrogate"):
        TOKENIZER.evaluate(["a", "\ud800"])
    for sizes in ([9], ["1 k"], 9, [None], [1.5], True):
        with pytest.raises(UsageError, match=r"^vocab_sizes"):
            TOKENIZER.evaluate(["a"], vocab_sizes=sizes)
    with pytest.raises(UsageError, match=r"^pretokenizer"):
        TOKENIZER.evaluate(["a"], pretokenizer=5)


@pytest.mark.parametrize(
    "kind",
    [
        lambda texts: (text.encode() for text in texts),
        lambda texts: [texts[:2], tuple(texts[2:])],
        pa.array,
        lambda texts: pa.chunked_array([texts[:1], texts[1:]]),
        lambda texts: [pa.array(texts[:3], pa.large_string()), *texts[3:]],
    ],
)
@pytest.mark.parametrize("pretokenizer", ["gpt2", "none"])
def test_texts_are_what_train_takes(kind: Any, pretokenizer: str) -> None:
    expected = TOKENIZER.evaluate(TEXTS, pretokenizer=pretokenizer)
    assert TOKENIZER.evaluate(kind(TEXTS), pretokenizer=pretokenizer) == expected


@pytest.mark.parametrize("pretokenizer", ["gpt2", "none"])
def test_a_mapping_has_the_figures_of_its_sources(pretokenizer: str) -> None:
    def figures(texts: Any) -> Any:
        return TOKENIZER.evaluate(texts, pretokenizer=pretokenizer)["figures"]

    sources = {"b": TEXTS[:3], "a": iter(TEXTS[3:])}
    found = figures(sources)
    assert list(found["sources"]) == ["a", "b"]
    assert found["sources"]["b"] == figures(TEXTS[:3])["total"]
    assert found["sources"]["a"] == figures(TEXTS[3:])["total"]
    assert found["total"] == figures(TEXTS)["total"]
    assert set(found["fairness"]) >= {"tokens_per_word"}


def test_translations_are_compared_by_their_tokens() -> None:
    sources = {"a": TEXTS[:3], "b": TEXTS[3:]}
    counts = bpe_beam.count(sources)
    for own in (sources, counts):
        figures = TOKENIZER.evaluate(own, parallel="a")["figures"]
        tokens = {name: row["tokens"] for name, row in figures["sources"].items()}
        assert figures["premiums"] == {"a": 1, "b": tokens["b"] / tokens["a"]}
        assert figures["fairness"]["tokens"]["worst"] == max(tokens, key=lambda name: tokens[name])
        with pytest.raises(UsageError, match=r"parallel must be one of the sources, a, b, got"):
            TOKENIZER.evaluate(own, parallel="c")
    with pytest.raises(UsageError, match="parallel must be one of the sources, none, got 'a'"):
        TOKENIZER.evaluate(TEXTS, parallel="a")


def test_sizes_are_written_as_for_training() -> None:
    expected = TOKENIZER.evaluate(TEXTS, vocab_sizes=[300])
    assert expected["curve"]
    for sizes in (300, "300", ("300",)):
        assert TOKENIZER.evaluate(TEXTS, vocab_sizes=sizes) == expected

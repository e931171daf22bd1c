"""`bpe_beam.evaluate` on texts, files and counts, of one tokenizer or several."""

from __future__ import annotations

import json
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
    found = bpe_beam.evaluate(TOKENIZER, iter(TEXTS), vocab_sizes=[300])
    for name, value in expected.items():
        assert found["figures"]["total"][name] == pytest.approx(value, rel=1e-12), name
    assert [one["vocab_size"] for one in found["curve"]] == [300]
    monkeypatch.setattr(text_batches, "BATCH_CHARACTERS", 10)
    assert bpe_beam.evaluate(TOKENIZER, TEXTS, vocab_sizes=[300]) == found


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
        found = bpe_beam.evaluate(tokenizer, TEXTS, pretokenizer=pretokenizer)
        total = found["figures"]["total"]
        assert found["exact"]
        assert (total["tokens"], total["words"]) == (tokens, words)
        assert tokens < total["bytes"] == len("".join(TEXTS).encode())


def test_counts_give_the_figures_of_their_texts(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", [text.removesuffix("\n") for text in TEXTS])
    run_whole("count", "--input", tmp_path / "a.txt", "--output", tmp_path / "counts")
    found = bpe_beam.evaluate(TOKENIZER, tmp_path / "counts")
    assert found == bpe_beam.evaluate(TOKENIZER, str(tmp_path / "counts"))
    lines = [text.removesuffix("\n") for text in TEXTS]
    assert found == bpe_beam.evaluate(TOKENIZER, [line for line in lines if line])
    assert found == bpe_beam.evaluate(TOKENIZER, bpe_beam.count(lines))


def test_counts_in_memory_have_the_figures_of_their_folder_by_source(tmp_path: Path) -> None:
    for name, text in zip("ab", TEXTS, strict=False):
        write(tmp_path / f"{name}.jsonl", [text])
    sources = ("--source", "a=a.jsonl", "--source", "b=b.jsonl")
    counts = tmp_path / "counts"
    run_whole("count", "--input", f"{tmp_path}/*.jsonl", *sources, "--output", counts)
    in_memory = bpe_beam.count({"a": TEXTS[:1], "b": TEXTS[1:2]})
    assert bpe_beam.evaluate(TOKENIZER, in_memory) == bpe_beam.evaluate(TOKENIZER, str(counts))


def test_several_tokenizers_have_the_reports_of_each(tmp_path: Path) -> None:
    across = Tokenizer.from_learned([*byte_level.BYTE_TO_CHAR, "e\u0120"], [("e", "\u0120")])
    inexact = Tokenizer(replace(across.spec, pre_tokenizer=ByteLevelPreTokenizer(use_regex=False)))
    tokenizers = [TOKENIZER, inexact, TOKENIZER]
    write(tmp_path / "a.txt", [text.removesuffix("\n") for text in TEXTS])
    counts = bpe_beam.count(TEXTS)
    for texts in (TEXTS, {"a": TEXTS[:3], "b": TEXTS[3:]}, tmp_path / "a.txt", counts):
        each = [bpe_beam.evaluate(one, texts) for one in tokenizers]
        assert bpe_beam.evaluate(tokenizers, texts) == each
        named = bpe_beam.evaluate(dict(enumerate(tokenizers)), texts)
        assert named == {number: {**row, "name": str(number)} for number, row in enumerate(each)}
    once = bpe_beam.evaluate(tokenizers, iter(TEXTS))
    assert once == bpe_beam.evaluate(tokenizers, TEXTS)


def test_files_have_the_report_of_the_command(tmp_path: Path) -> None:
    for name, text in zip("ab", TEXTS, strict=False):
        write(tmp_path / f"{name}.jsonl", [text])
    TOKENIZER.save(tmp_path / "t.json")
    run_whole(
        "evaluate", "--tokenizer", f"x={tmp_path}/t.json", "--input", f"{tmp_path}/?.jsonl",
        *("--source", "a=a*", "--source", "b=b*", "--vocab-sizes", "300"),
        *("--output", tmp_path / "report.json"),
    )  # fmt: skip
    (expected,) = json.loads((tmp_path / "report.json").read_bytes())["tokenizers"]
    options: dict[str, Any] = {"sources": {"a": "a*", "b": "b*"}, "vocab_sizes": [300]}
    by_name = {"x": TOKENIZER}
    assert bpe_beam.evaluate(by_name, f"{tmp_path}/?.jsonl", **options) == {"x": expected}
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    assert bpe_beam.evaluate(by_name, paths, **options) == {"x": expected}
    assert bpe_beam.evaluate(by_name, inputs=paths, **options) == {"x": expected}


def test_wrong_tokenizers_and_options(tmp_path: Path) -> None:
    for tokenizers in ("t.json", [], [TOKENIZER, "t.json"], {}, {"a": 1}, None):
        with pytest.raises(UsageError, match=r"^tokenizers must be a Tokenizer, a sequence of"):
            bpe_beam.evaluate(tokenizers, TEXTS)
    for name in ("output", "format", "work", "tokens"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            bpe_beam.evaluate(TOKENIZER, TEXTS, **{name: "x"})
    counts = bpe_beam.count(TEXTS)
    with pytest.raises(UsageError, match=r"^text_field has no effect on texts or counts"):
        bpe_beam.evaluate(TOKENIZER, counts, text_field="x")
    with pytest.raises(UsageError, match=r"^pretokenizer has no effect on counts"):
        bpe_beam.evaluate(TOKENIZER, counts, pretokenizer="gpt2")
    with pytest.raises(UsageError, match="exclude each other"):
        bpe_beam.evaluate(TOKENIZER, TEXTS, inputs=["a"])


def test_wrong_arguments() -> None:
    kinds = "must be texts, a path, or counts"
    for argument, message in {
        ("a", 1): "text 1 must be str or bytes, got int",
        b"ab": f"texts_or_counts {kinds}, got bytes",
        None: f"texts_or_counts {kinds}, got None",
        5: f"texts_or_counts {kinds}, got int",
        (__file__, "b"): "texts_or_counts is a list of str, .* names a file",
        Path("missing"): "missing",
    }.items():
        with pytest.raises(UsageError, match=message):
            bpe_beam.evaluate(TOKENIZER, argument)
    for own in ("a", bpe_beam.count(["a"]), 5):
        with pytest.raises(UsageError, match=r"^texts_or_counts must"):
            bpe_beam.evaluate(TOKENIZER, {"en": own})
    inexact = Tokenizer(
        replace(TOKENIZER.spec, pre_tokenizer=ByteLevelPreTokenizer(use_regex=False))
    )
    for tokenizer in (TOKENIZER, inexact):
        with pytest.raises(DataError, match=r"text 1: .*lone surrogate"):
            bpe_beam.evaluate(tokenizer, ["a", "\ud800"])
        with pytest.raises(DataError, match="text 1: byte 0 is not UTF-8"):
            bpe_beam.evaluate(tokenizer, ["a", b"\xff"])
        with pytest.raises(DataError, match="the texts are empty"):
            bpe_beam.evaluate(tokenizer, [])
    for sizes in ([9], ["1 k"], 9, [None], [1.5], True):
        with pytest.raises(UsageError, match=r"^vocab_sizes"):
            bpe_beam.evaluate(TOKENIZER, ["a"], vocab_sizes=sizes)
    with pytest.raises(UsageError, match=r"^pretokenizer"):
        bpe_beam.evaluate(TOKENIZER, ["a"], pretokenizer=5)


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
    expected = bpe_beam.evaluate(TOKENIZER, TEXTS, pretokenizer=pretokenizer)
    assert bpe_beam.evaluate(TOKENIZER, kind(TEXTS), pretokenizer=pretokenizer) == expected


@pytest.mark.parametrize("pretokenizer", ["gpt2", "none"])
def test_a_mapping_has_the_figures_of_its_sources(pretokenizer: str) -> None:
    def figures(texts: Any) -> Any:
        return bpe_beam.evaluate(TOKENIZER, texts, pretokenizer=pretokenizer)["figures"]

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
        figures = bpe_beam.evaluate(TOKENIZER, own, parallel="a")["figures"]
        tokens = {name: row["tokens"] for name, row in figures["sources"].items()}
        assert figures["premiums"] == {"a": 1, "b": tokens["b"] / tokens["a"]}
        assert figures["fairness"]["tokens"]["worst"] == max(tokens, key=lambda name: tokens[name])
        with pytest.raises(UsageError, match=r"parallel must be one of the sources, a, b, got"):
            bpe_beam.evaluate(TOKENIZER, own, parallel="c")
    with pytest.raises(UsageError, match="parallel must be one of the sources, none, got 'a'"):
        bpe_beam.evaluate(TOKENIZER, TEXTS, parallel="a")


def test_sizes_are_written_as_for_training() -> None:
    expected = bpe_beam.evaluate(TOKENIZER, TEXTS, vocab_sizes=[300])
    assert expected["curve"]
    for sizes in (300, "300", ("300",)):
        assert bpe_beam.evaluate(TOKENIZER, TEXTS, vocab_sizes=sizes) == expected

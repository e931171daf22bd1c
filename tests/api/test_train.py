"""`bpe_beam.train` and `count`: equal to the command line to the byte, from texts of every kind."""

from __future__ import annotations

import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command_line import run_whole
from made_text import documents, write

import bpe_beam
from bpe_beam.api import text_batches
from bpe_beam.errors import DataError, UsageError

TEXTS = [
    *documents(120, seed=5),
    "Zo\u00eb  costs 12345\u20ac, \ufb01ne\n \u8bed\u8a00! <x> </x>",
    "",
]

# Options by their names in Python, and as they are typed.
RECIPES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "bytes": (
        {"vocab_size": 350, "special_tokens": ["<x>", "</x>"], "min_frequency": 2},
        (
            *("--vocab-size", "350", "--special-token", "<x>", "--special-token", "</x>"),
            *("--min-frequency", "2"),
        ),
    ),
    "first_seen": (
        {"vocab_size": 330, "tie_break": "first_seen", "pretokenizer": "cl100k"},
        ("--vocab-size", "330", "--tie-break", "first_seen", "--pretokenizer", "cl100k"),
    ),
    "a pattern that holds the GIL": (
        {"vocab_size": 330, "pretokenizer": r"regex:\w+|\s+|[^\w\s]", "max_token_length": 5},
        (
            *("--vocab-size", "330", "--pretokenizer", r"regex:\w+|\s+|[^\w\s]"),
            *("--max-token-length", "5"),
        ),
    ),
    "byte fallback": (
        {"vocab_size": 400, "pretokenizer": "metaspace", "byte_fallback": True}
        | {"limit_alphabet": 20, "normalizer": "nfkc", "unk_token": "<unk>"},
        (
            *("--vocab-size", "400", "--pretokenizer", "metaspace", "--byte-fallback"),
            *("--limit-alphabet", "20", "--normalizer", "nfkc", "--unk-token", "<unk>"),
        ),
    ),
    "wordpiece": (
        {"vocab_size": 300, "model": "wordpiece", "pretokenizer": "bert", "normalizer": "bert"}
        | {"special_tokens": ("[CLS]", "[SEP]"), "template": "[CLS] $A [SEP]"},
        (
            *("--vocab-size", "300", "--model", "wordpiece", "--pretokenizer", "bert"),
            *("--normalizer", "bert", "--special-token", "[CLS]", "--special-token", "[SEP]"),
            *("--template", "[CLS] $A [SEP]"),
        ),
    ),
    "prefix_bpe": (
        {"vocab_size": 300, "model": "prefix_bpe", "pretokenizer": "whitespace"},
        ("--vocab-size", "300", "--model", "prefix_bpe", "--pretokenizer", "whitespace"),
    ),
    "word_level": (
        {"vocab_size": 100, "model": "word_level", "pretokenizer": "whitespace"},
        ("--vocab-size", "100", "--model", "word_level", "--pretokenizer", "whitespace"),
    ),
}


WITH_FILES = ("bytes", "first_seen")
"""Recipes whose corpus is also read from files, which is slower and the same for all."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", RECIPES)
def test_texts_counts_and_files_give_the_bytes_of_the_command_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "first_seen":  # positions go on from batch to batch
        monkeypatch.setattr(text_batches, "BATCH_CHARACTERS", 500)
    recipe, typed = RECIPES[name]
    corpus = write(tmp_path / "in.jsonl", TEXTS)
    run_whole("train", "--input", corpus, *typed, "--output", tmp_path / "tok")
    expected = (tmp_path / "tok" / "tokenizer.json").read_text("utf-8")

    of_counting = ("normalizer", "pretokenizer", "special_tokens", "tie_break")
    counting = {key: value for key, value in recipe.items() if key in of_counting}
    counts = bpe_beam.count(TEXTS, workers=2, **counting)
    assert bpe_beam.train(TEXTS, **recipe).to_json() == expected
    assert bpe_beam.train((text.encode() for text in TEXTS), **recipe).to_json() == expected
    assert bpe_beam.train(counts, **recipe).to_json() == expected
    if name not in WITH_FILES:
        return
    assert bpe_beam.train(corpus, **recipe).to_json() == expected
    from_files = bpe_beam.count(inputs=[str(corpus)], **counting)
    assert from_files.words.sort_by("word").equals(counts.words.sort_by("word"))
    assert bpe_beam.train(from_files, **recipe).to_json() == expected


def test_every_kind_of_texts_gives_one_tokenizer() -> None:
    expected = bpe_beam.train(TEXTS, vocab_size=300)
    batches = [TEXTS[:50], tuple(TEXTS[50:60]), pa.array(TEXTS[60:])]
    for texts in (
        tuple(TEXTS),
        iter(TEXTS),
        batches,
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string())[:],
        pa.chunked_array([TEXTS[:1], [], TEXTS[1:]]),
        dict.fromkeys(range(1), None) and (text for text in TEXTS),
    ):
        assert bpe_beam.train(texts, vocab_size=300, workers=3) == expected


def test_one_training_of_counts_does_not_change_the_next() -> None:
    counts = bpe_beam.count(TEXTS)
    first = bpe_beam.train(counts, vocab_size=300)
    larger = bpe_beam.train(counts, vocab_size=340)
    assert bpe_beam.train(counts, vocab_size=300) == first
    assert larger.merges[: len(first.merges)] == first.merges


def test_sources_have_weights(tmp_path: Path) -> None:
    by_source = {"a": TEXTS[:60], "b": iter(TEXTS[60:])}
    for name, texts in (("a", TEXTS[:60]), ("b", TEXTS[60:])):
        write(tmp_path / f"{name}.jsonl", texts)
    run_whole(
        *("train", "--input", f"{tmp_path}/*.jsonl", "--vocab-size", "330", "--weights", "a=0.25"),
        *("--source", "a=a.jsonl", "--source", "b=b.jsonl", "--output", tmp_path / "tok"),
    )
    expected = (tmp_path / "tok" / "tokenizer.json").read_text("utf-8")

    counts = bpe_beam.count(by_source)
    assert counts.sources == ("a", "b")
    assert bpe_beam.train(counts, vocab_size=330, weights={"a": 0.25}).to_json() == expected
    from_files = bpe_beam.train(
        inputs=[f"{tmp_path}/*.jsonl"],
        vocab_size=330,
        sources={"a": "a.jsonl", "b": "b.jsonl"},
        weights={"a": "0.25"},
    )
    assert from_files.to_json() == expected
    assert bpe_beam.train(counts, vocab_size=330).to_json() != expected


def test_nothing_stays_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write(tmp_path / "in.jsonl", TEXTS[:20])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.chdir(temporary)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    bpe_beam.train(corpus, vocab_size=260)
    bpe_beam.train(TEXTS, vocab_size=260)
    bpe_beam.count(corpus)
    with pytest.raises(DataError, match="is empty"):
        bpe_beam.train(write(tmp_path / "empty.txt", []), vocab_size=260)
    assert not [*temporary.iterdir()]

    (tmp_path / "bad.jsonl").write_bytes(b'{"text": "a"}\n' + b"nothing\n" * 9)
    with pytest.raises(DataError, match="rejects") as error:
        bpe_beam.train(tmp_path / "bad.jsonl", vocab_size=260, max_rejects="10%")
    (kept,) = temporary.iterdir()
    assert str(kept) in str(error.value)


def test_progress_and_warnings_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="has 2[0-9]{2} entries, not 5,000") as found:
        bpe_beam.train(["a b"], vocab_size=5000, progress="plain")
    assert found[0].filename == __file__
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["count", "learn"]
    bpe_beam.train(["a b"], vocab_size=260)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (TEXTS, {}, "vocab_size is required"),
        (TEXTS, {"vocab_size": "many"}, "vocab_size must be a whole number"),
        (TEXTS, {"vocab_size": 10}, "vocab_size must be at least 256"),
        (TEXTS, {"vocab_size": 300, "model": "lstm"}, "model must be one of bpe"),
        (TEXTS, {"vocab_size": 300, "workers": 0}, "workers must be at least 1"),
        (TEXTS, {"vocab_size": 300, "progress": "loud"}, "progress must be one of"),
        (
            TEXTS,
            {"vocab_size": 300, "text_field": "a"},
            "text_field has no effect on texts or counts",
        ),
        (TEXTS, {"vocab_size": 300, "counts": "c"}, "texts_or_paths and counts exclude"),
        (
            TEXTS,
            {"vocab_size": 300, "weights": {"a": 2}},
            "weights must have sources; give a mapping",
        ),
        (TEXTS, {"vocab_size": 300, "merge_rounds": "distributed"}, "merge_rounds must not be"),
        (
            [f"{n:020}" for n in range(2000)],
            {"vocab_size": 300, "driver_memory": "1MB"},
            "more than driver_memory",
        ),
        (None, {"vocab_size": 300}, "counts and inputs are both missing"),
        ([__file__], {"vocab_size": 300}, "the first one names a file"),
        ([f"{Path(__file__).parent}/*.py"], {"vocab_size": 300}, "the first one names a file"),
        (b"text", {"vocab_size": 300}, "must be texts, a path, or counts, got bytes"),
        ([3], {"vocab_size": 300}, "text 0 must be str or bytes, got int"),
        ([{"text": "a"}], {"vocab_size": 300}, "give the texts of rows"),
        (pa.array([1]), {"vocab_size": 300}, "must be string or large_string"),
        ({"a": "b"}, {"vocab_size": 300}, "must have texts for the source 'a'"),
        ({1: ["b"]}, {"vocab_size": 300}, "must have names of sources as keys, got 1"),
    ],
)
def test_wrong_arguments_are_named(texts: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bpe_beam.train(texts, **options)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a"] * 9 + ["b\ud800"], r"text 9: character U\+D800 at 1 is a lone surrogate"),
        ([b"a", b"b\xff"], "text 1: byte 1 is not UTF-8"),
        (pa.array(["a", None]), "text 1 is null"),
        ([["a"], pa.array(["b", None])], "text 2 is null"),
        ([], "the texts are empty"),
    ],
)
def test_texts_that_are_none_are_named(texts: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        bpe_beam.count(texts)


def test_settings_are_checked_before_a_text_is_taken() -> None:
    texts = iter(TEXTS)
    for options in ({"vocab_size": 10}, {"vocab_size": 300, "template": "[CLS] $A"}):
        with pytest.raises(UsageError):
            bpe_beam.train(texts, **options)
    assert next(texts) == TEXTS[0]
    counts = bpe_beam.count(TEXTS)
    with pytest.raises(UsageError, match="weights must have counts by source"):
        bpe_beam.train(counts, vocab_size=300, weights={"a": 2})


def test_the_error_of_a_generator_is_raised() -> None:
    def failing() -> Iterator[str]:
        yield from TEXTS
        raise OSError("the source broke off")

    def interrupted() -> Iterator[str]:
        yield from TEXTS
        raise KeyboardInterrupt

    with pytest.raises(OSError, match="broke off"):
        bpe_beam.count(failing())
    with pytest.raises(KeyboardInterrupt):
        bpe_beam.count(interrupted())
    assert not [each for each in threading.enumerate() if each.name.startswith("count")]


def test_an_unknown_argument_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"train\(\) .* 'vocabsize'; did you mean vocab_size"):
        bpe_beam.train(TEXTS, vocabsize=300)
    with pytest.raises(TypeError, match=r"count\(\) got an unexpected keyword argument 'output'"):
        bpe_beam.count(TEXTS, output="counts")

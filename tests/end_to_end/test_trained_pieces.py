"""Tokenizers of `unigram` and `mingram`, through the jobs that read and write them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import run, run_whole
from made_text import documents, write

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.jobs.train import commits

TEXTS = documents(200, seed=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a corpus and a tokenizer of each model."""
    path = tmp_path_factory.mktemp("pieces")
    write(path / "a.jsonl", TEXTS)
    for model in ("unigram", "mingram"):
        arguments = ("--model", model, "--vocab-size", "330", "--output", path / model)
        ran = run("train", "--input", path / "a.jsonl", *arguments, "--eos-token", "</s>")
        assert ran.code == 0, ran.err
    return path


@pytest.mark.parametrize("model", ["unigram", "mingram"])
def test_all_ways_give_the_same_tokenizer(model: str, folder: Path) -> None:
    trained = (folder / model / "tokenizer.json").read_text()
    counts = ("--counts", folder / model / "counts")
    for workers in ("1", "3"):
        again = folder / f"{model}-{workers}"
        more = ("--model", model, "--vocab-size", "330", "--workers", workers, "--output", again)
        assert run("train", *counts, *more, "--eos-token", "</s>").code == 0
        assert (again / "tokenizer.json").read_text() == trained
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("MINIMUM_WORD_BYTES", "MAXIMUM_WORD_BYTES"):
            patch.setattr(commits, limit, 1000)
        more = ("--model", model, "--vocab-size", "330", "--merge-rounds", "distributed")
        ran = run_whole("train", *counts, *more, "--eos-token", "</s>", "--output", folder / "far")
    assert (folder / "far" / "tokenizer.json").read_text() == trained
    assert not (folder / "far" / "rounds").exists()
    here = json.loads((folder / model / "summary.json").read_bytes())
    for key in ("passes", "pieces_by_pass", "bytes_per_token"):
        assert ran.summary[key] == here[key]
    shutil.rmtree(folder / "far")
    options = {"model": model, "vocab_size": 330, "eos_token": "</s>"}
    assert bpe_beam.train(TEXTS, **options).to_json() == trained


@pytest.mark.parametrize("model", ["unigram", "mingram"])
def test_the_summary_counts_the_tokens_of_the_words(model: str, folder: Path) -> None:
    summary = json.loads((folder / model / "summary.json").read_bytes())
    tokenizer = Tokenizer.from_file(str(folder / model / "tokenizer.json"))
    tokens = sum(map(len, tokenizer.encode_batch(TEXTS)))
    words = sum(len(f"▁{text}".replace(" ", "▁").encode()) for text in TEXTS if text)
    assert summary["bytes_per_token"] == round(words / tokens, 4)
    assert len(summary["pieces_by_pass"]) == summary["passes"] + 1
    assert summary["pieces_by_pass"][0] > summary["pieces_by_pass"][-1] >= 330 - 2
    assert {"tokenizer.json", "tokenizer.model"} <= {file["name"] for file in summary["files"]}


@pytest.mark.parametrize("model", ["unigram", "mingram"])
def test_other_jobs_read_it(model: str, folder: Path) -> None:
    tokenizer = folder / model / "tokenizer.json"
    inputs = ("--input", folder / "a.jsonl", "--tokenizer", tokenizer)
    assert run("evaluate", *inputs).code == 0
    assert run("inspect", folder / model).code == 0
    assert run("diff", folder / "unigram", folder / "mingram").code == 1
    exported = folder / f"{model}.model"
    assert run("export", tokenizer, "--format", "sentencepiece", "--output", exported).code == 0
    expected = Tokenizer.from_file(str(tokenizer)).encode_batch(TEXTS)
    assert Tokenizer.from_file(str(exported)).encode_batch(TEXTS) == expected
    ran = run("evaluate", *inputs, "--vocab-sizes", "320")
    assert ran.code == 2
    assert "only merges have an order" in ran.message


@pytest.mark.parametrize("model", ["unigram", "mingram"])
def test_what_cannot_be_trained_is_refused_by_name(model: str, folder: Path) -> None:
    base = ("train", "--input", folder / "a.jsonl", "--model", model, "--output", folder / "never")
    for options, said in (
        (("--vocab-size", "20"), "--vocab-size must be at least"),
        (("--vocab-size", "20"), "smaller --character-coverage"),
        (("--vocab-size", "330", "--continue-from", "x"), "no tokens can be added to them"),
        (("--vocab-size", "330", "--special-token", "x"), "must have at least two characters"),
        (("--vocab-size", "330", "--character-coverage", "0.5"), "from 0.9 to 1"),
    ):
        ran = run(*base, *options)
        assert ran.code == 2, options
        assert said in ran.message
        assert not (folder / "never" / "tokenizer.json").exists()

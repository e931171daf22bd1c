"""`train --merge-rounds distributed` as users call it: the bytes of training in one process."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from command_line import run, run_whole
from made_text import documents, write

TEXTS = documents(1500, seed=11)
WHOLE = ("--vocab-size", "700")

# Options of train. A megabyte is too little for the words.
WAYS = {
    "bytes": (),
    "greatest bytes": ("--tie-break", "greatest_bytes"),
    "characters": ("--pretokenizer", "metaspace", "--unk-token", "<unk>"),
    "suffix": ("--pretokenizer", "whitespace_split", "--end-of-word-suffix", "</w>"),
    "prefix": ("--model", "prefix_bpe", "--pretokenizer", "bert"),
    "lengths": ("--max-token-length", "5"),
    "WordPiece": ("--model", "wordpiece", "--pretokenizer", "bert", "--min-frequency", "40"),
    "special tokens": ("--special-token", "the", "--special-token", "<s>"),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("corpus") / "a.jsonl", TEXTS)


def rounds_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "summary.json").read_text())["rounds"]
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WAYS)
def test_the_same_bytes(name: str, corpus: Path, tmp_path: Path) -> None:
    arguments = ("train", "--input", corpus, *WHOLE, *WAYS[name])
    run_whole(*arguments, "--output", tmp_path / "here")
    run_whole(
        *(*arguments, "--merge-rounds", "distributed"),
        *("--driver-memory", "3MB" if name == "WordPiece" else "1MB"),
        *("--output", tmp_path / "there"),
    )
    for file in ("tokenizer.json", "vocab.json"):
        assert (tmp_path / "there" / file).read_bytes() == (tmp_path / "here" / file).read_bytes()
    rows = rounds_of(tmp_path / "there")
    assert "segments" in {row["learned_from"] for row in rows}
    assert (len(rows) > 1) == (name != "WordPiece")
    assert not (tmp_path / "there" / "rounds").exists()


def test_the_merges_of_hugging_face(corpus: Path, tmp_path: Path) -> None:
    run_whole(
        *("train", "--input", corpus, *WHOLE, "--merge-rounds", "distributed"),
        *("--driver-memory", "1MB", "--output", tmp_path),
    )
    assert len(rounds_of(tmp_path)) > 1
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=700,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator(TEXTS, trainer)
    ours = json.loads((tmp_path / "tokenizer.json").read_text())["model"]
    model = json.loads(theirs.to_str())["model"]
    assert ours["vocab"] == model["vocab"]
    assert [list(pair) for pair in ours["merges"]] == [list(pair) for pair in model["merges"]]


def test_going_on_with_a_tokenizer_and_weighted_sources(corpus: Path, tmp_path: Path) -> None:
    rows = [{"text": text, "of": "ab"[number % 2]} for number, text in enumerate(TEXTS)]
    both = tmp_path / "both.jsonl"
    both.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run_whole("count", "--input", both, "--source-field", "of", "--output", tmp_path / "counts")
    run_whole("train", "--input", corpus, "--vocab-size", "400", "--output", tmp_path / "old")
    arguments = (
        *("train", "--counts", tmp_path / "counts", *WHOLE, "--weights", "a=0.5"),
        *("--continue-from", tmp_path / "old" / "tokenizer.json"),
    )
    run_whole(*arguments, "--output", tmp_path / "here")
    run_whole(
        *arguments, "--merge-rounds", "distributed", "--driver-memory", "1MB",
        "--output", tmp_path / "there",
    )  # fmt: skip
    for name in ("tokenizer.json", "merges.txt"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_words_beyond_the_memory_are_learned_in_rounds(corpus: Path, tmp_path: Path) -> None:
    arguments = ("train", "--input", corpus, *WHOLE, "--driver-memory", "1MB")
    ran = run_whole(*arguments, "--output", tmp_path / "auto").summary
    assert ran["merge_rounds"] == "distributed"
    assert "more than driver_memory 1 MB" in ran["merge_rounds_because"]
    refused = run(*arguments, "--merge-rounds", "local", "--output", tmp_path / "local")
    assert refused.code == 2
    said = r"give --driver-memory (\d+MB), or --merge-rounds distributed"
    asked = re.search(said, refused.message)
    assert asked is not None, refused.message
    local = (*arguments[:-1], asked[1], "--merge-rounds", "local", "--output", tmp_path / "local")
    assert run_whole(*local).summary["merge_rounds"] == "local"
    enough = ("--driver-memory", "1GB", "--overwrite")
    assert (
        run_whole(*arguments[:-2], *enough, "--output", tmp_path / "auto").summary["merge_rounds"]
        == "local"
    )


def test_a_refusal_leaves_what_a_killed_run_has_learned(corpus: Path, tmp_path: Path) -> None:
    run_whole("count", "--input", corpus, "--output", tmp_path / "counts")
    arguments = ("train", "--counts", tmp_path / "counts", *WHOLE, "--output", tmp_path / "tok")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bpe_beam.jobs.train.commits.RoundsFolder.new_run", lambda _: 1 / 0)
        assert run(*arguments, "--driver-memory", "1MB").code == 1
    assert (tmp_path / "tok" / "rounds" / "start.json").exists()
    assert run(*arguments, "--driver-memory", "1MB", "--merge-rounds", "local").code == 2
    assert (tmp_path / "tok" / "rounds" / "start.json").exists()
    assert (
        "another job"
        in run(*arguments[:-2], "--tie-break", "greatest_bytes", *arguments[-2:]).message
    )
    run_whole(*arguments, "--driver-memory", "1MB")
    assert not (tmp_path / "tok" / "rounds").exists()


def test_a_refusal_takes_nothing_away(corpus: Path, tmp_path: Path) -> None:
    """Neither what has finished, nor the claim of a run that was killed."""
    run_whole("count", "--input", corpus, "--output", tmp_path / "counts")
    out = tmp_path / "tok"
    arguments = ("train", "--counts", tmp_path / "counts", "--output", out)
    run_whole(*arguments, *WHOLE)
    made = (out / "tokenizer.json").read_bytes()
    for refused in (("--tie-break", "first_seen"), ("--model", "word_level")):
        ran = run(*arguments, *WHOLE, *refused, "--merge-rounds", "distributed", "--overwrite")
        assert ran.code == 2
        assert (out / "tokenizer.json").read_bytes() == made
    # A finished folder is reported, also with settings that could not train it.
    again = run_whole(
        *arguments, *WHOLE, "--merge-rounds", "local", "--driver-memory", "1MB"
    ).summary
    assert again["was_finished_before"]


def test_settings_alone_are_refused_before_a_corpus_is_read(corpus: Path, tmp_path: Path) -> None:
    arguments = ("train", "--input", corpus, *WHOLE, "--merge-rounds", "distributed")
    for refused in (("--tie-break", "first_seen"), ("--model", "word_level")):
        assert run(*arguments, *refused, "--output", tmp_path / "tok").code == 2
        assert not (tmp_path / "tok").exists()

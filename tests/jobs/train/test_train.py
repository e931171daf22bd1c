"""What training has learned is kept: nothing is refused after the last merge."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from command_line import run, run_whole

from bpe_beam.errors import UsageError
from bpe_beam.jobs import train
from bpe_beam.jobs.train.commits import RoundsFolder
from bpe_beam.tokenizer.tokenizer import Tokenizer

RUN = 9_000
LINES = ["hello world the cat and the hat"] * 5 + ["a" * RUN] * 3

WAYS = {
    "bytes": (),
    "first_seen": ("--tie-break", "first_seen"),
    "suffix": ("--pretokenizer", "whitespace_split", "--end-of-word-suffix", "</w>"),
    "prefix_bpe": ("--model", "prefix_bpe", "--pretokenizer", "bert"),
    "word_level": ("--model", "word_level", "--pretokenizer", "whitespace"),
}


def corpus(folder: Path) -> Path:
    file = folder / "run.txt"
    file.write_text("\n".join(LINES) + "\n")
    return file


def arguments_of(counts: Path, output: Path) -> tuple[str | Path, ...]:
    return ("--counts", counts, "--vocab-size", "280", "--output", output)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with counts and a finished training from them."""
    folder = tmp_path_factory.mktemp("finished")
    run_whole("count", "--input", corpus(folder), "--output", folder / "counts")
    arguments = arguments_of(folder / "counts", folder / "tok")
    run_whole("train", *arguments)
    return folder


@pytest.mark.parametrize("way", WAYS)
def test_a_run_of_one_letter_makes_a_long_token(way: str, tmp_path: Path) -> None:
    arguments = ("train", "--input", corpus(tmp_path), "--vocab-size", "400", *WAYS[way])
    summary = run_whole(*arguments, "--output", tmp_path / "tok").summary
    path = str(tmp_path / "tok" / "tokenizer.json")
    ours, theirs = Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(path)
    longest = max(map(len, ours.vocab))
    assert longest > RUN - 10
    for text in [*LINES[4:6], "a" * 20_001, "the aaaa"]:
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids
    told = [text for text in summary["warnings"] if "the longest token has" in text]
    assert len(told) == (way != "word_level")


def test_special_tokens_that_counting_did_not_extract(finished: Path, tmp_path: Path) -> None:
    arguments = arguments_of(finished / "counts", tmp_path / "tok")
    summary = run_whole("train", *arguments, "--special-token", "<end>").summary
    found = [text for text in summary["warnings"] if text.startswith("<end>: not extracted")]
    assert len(found) == 1
    assert "count with --special-token" in found[0]


@pytest.mark.parametrize("rounds", ["local", "distributed"])
@pytest.mark.parametrize("way", ["bytes", "prefix_bpe"])
def test_the_summary_tells_bytes_a_token(rounds: str, way: str, tmp_path: Path) -> None:
    """Exactly those of the text: here the merges give what the tokenizer does."""
    arguments = ("train", "--input", corpus(tmp_path), "--vocab-size", "280", *WAYS[way])
    arguments += ("--merge-rounds", rounds, "--output", tmp_path / "tok")
    summary = run_whole(*arguments).summary
    made = Tokenizer.from_file(str(tmp_path / "tok" / "tokenizer.json"))
    kept = (line if way == "bytes" else line.replace(" ", "") for line in LINES)
    size = sum(map(len, kept))
    tokens = sum(len(made.encode(line)) for line in LINES)
    assert summary["bytes_per_token"] == round(size / tokens, 4)


def test_nearly_single_characters_are_warned_of(tmp_path: Path) -> None:
    made = random.Random(3)
    letters = [chr(0x400 + code) for code in range(500)]
    rare = ["".join(made.choices(letters, k=made.randint(2, 8))) for _ in range(600)]
    frequent = ["the", "of", "and", "all", "their", "houses"] * 3_000
    (tmp_path / "a.txt").write_text(" ".join([*frequent, *rare * 5]))
    arguments = ("train", "--input", tmp_path / "a.txt", "--pretokenizer", "bert")
    arguments += ("--vocab-size", "2500", "--min-frequency", "5")
    for model, told in (("wordpiece", True), ("prefix_bpe", False)):
        ran = run_whole(*arguments, "--model", model, "--output", tmp_path / model)
        vocab = json.loads((tmp_path / model / "vocab.json").read_text())
        assert ("the" in vocab and "houses" in vocab) != told
        said = f"{ran.summary['bytes_per_token']:.2f} bytes a token: nearly single characters"
        assert any(said in text for text in ran.summary["warnings"] or []) == told


def test_a_run_of_one_letter_in_rounds(tmp_path: Path) -> None:
    arguments = ("train", "--input", corpus(tmp_path), "--vocab-size", "400")
    run_whole(*arguments, "--output", tmp_path / "here")
    run_whole(*arguments, "--merge-rounds", "distributed", "--output", tmp_path / "there")
    made = [(tmp_path / name / "tokenizer.json").read_bytes() for name in ("here", "there")]
    assert made[0] == made[1]


def continued_from(folder: Path) -> Path:
    """A tokenizer with an added token that its model does not have."""
    begun = tokenizers.Tokenizer(tokenizers.models.BPE())
    begun.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    begun.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=270, initial_alphabet=alphabet, show_progress=False
    )
    begun.train_from_iterator(["hello world the cat and the hat"] * 5, trainer)
    begun.add_tokens(["covid", "unseen"])
    begun.save(str(folder / "base.json"))
    return folder / "base.json"


def test_a_text_that_spells_an_added_token(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("covid19 xcovid the covid19 covid\n" * 3)
    # In counts the token is plain text; from a corpus it would be extracted.
    run_whole("count", "--input", tmp_path / "a.txt", "--output", tmp_path / "counts")
    arguments = ("train", "--counts", tmp_path / "counts", "--vocab-size", "300")
    arguments += ("--continue-from", continued_from(tmp_path))
    run_whole(*arguments, "--output", tmp_path / "here")
    run_whole(*arguments, "--merge-rounds", "distributed", "--output", tmp_path / "there")
    path = tmp_path / "here" / "tokenizer.json"
    assert path.read_bytes() == (tmp_path / "there" / "tokenizer.json").read_bytes()
    ours, theirs = Tokenizer.from_file(str(path)), tokenizers.Tokenizer.from_file(str(path))
    assert ours.vocab["covid"] == theirs.token_to_id("covid") == 270
    assert any("covid" in merge for merge in ours.merges)  # also as a part of a longer token
    model = json.loads(path.read_text())["model"]
    assert model["vocab"]["unseen"] == theirs.token_to_id("unseen") == 271
    for text in ("covid19 the xcovid", "covi co covid unseen"):
        assert ours.encode(text) == theirs.encode(text).ids
        assert ours.decode(ours.encode(text)) == text


def test_what_no_tokenizer_can_hold_is_refused_first(tmp_path: Path) -> None:
    arguments = ("train", "--input", corpus(tmp_path), "--vocab-size", "400")
    ran = run(*arguments, "--special-token", "x" * 4_097, "--output", tmp_path / "tok")
    assert ran.code == 2
    assert "at most 4,096 characters long, got" in ran.message
    assert "of 4,097" in ran.message
    assert not (tmp_path / "tok").exists()


@pytest.mark.parametrize("rounds", ["local", "distributed"])
def test_a_special_token_that_words_spell_in_bytes(
    rounds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be one entry with two meanings; what no word holds is none."""
    arguments = (
        "train",
        "--input",
        corpus(tmp_path),
        "--vocab-size",
        "400",
        "--merge-rounds",
        rounds,
    )
    told = ("--special-token", "tĠthe", "--special-token", "café")
    assert run_whole(*arguments, *told, "--output", tmp_path / "tok").summary["merges"] > 20
    # Nothing is learned first.
    monkeypatch.setattr("bpe_beam._native.BpeLearner", lambda *_, **__: 1 / 0)
    ran = run(*arguments, "--special-token", "Ġthe", "--output", tmp_path / "refused")
    assert ran.code == 2
    assert "must not contain 'Ġthe', which is also how the bytes b' the' are written" in ran.message
    assert not (tmp_path / "refused" / "rounds").exists()


def test_rounds_stay_when_the_tokenizer_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("train", "--input", corpus(tmp_path), "--vocab-size", "400")
    arguments += ("--merge-rounds", "distributed", "--output", tmp_path / "tok")

    def refuse(*_: Any) -> Any:
        raise UsageError("no such tokenizer")

    with monkeypatch.context() as patch:
        patch.setattr(train, "tokenizer_of", refuse)
        assert run(*arguments).code == 2
    assert list((tmp_path / "tok" / "rounds").glob("commit-*.json"))
    # The same command makes it from the merges that were learned, without another round.
    monkeypatch.setattr(RoundsFolder, "new_run", lambda _: 1 / 0)
    assert run_whole(*arguments).summary["merges"] > 20
    assert not (tmp_path / "tok" / "rounds").exists()


@pytest.mark.parametrize("damaged", ["{}", "x", '{"files": []}', '{"files": [{"name": 3}]}'])
def test_a_damaged_summary_is_written_again(damaged: str, finished: Path, tmp_path: Path) -> None:
    """Training is repeated: the other files of the folder are trusted no more."""
    shutil.copytree(finished / "tok", tmp_path / "tok")
    before = json.loads((tmp_path / "tok" / "summary.json").read_text())
    (tmp_path / "tok" / "summary.json").write_text(damaged)
    arguments = arguments_of(finished / "counts", tmp_path / "tok")
    assert "was_finished_before" not in run_whole("train", *arguments).summary
    after = json.loads((tmp_path / "tok" / "summary.json").read_text())
    assert (after["files"], list(after)) == (before["files"], list(before))
    again = run_whole("train", *arguments).summary
    assert again["was_finished_before"] is True
    left_out = ("counting_seconds", "learning_seconds", "files", "job_fingerprint", "sha256")
    names = [name for name in before if name not in left_out]
    assert list(again) == [*names[:2], "was_finished_before", *names[2:]]

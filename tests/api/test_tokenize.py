"""`bpe_beam.tokenize`: the folder that the command writes, to the byte."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from read_back import tree

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError

TEXTS = ["hello world", "hello there", "x y z"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return bpe_beam.train(TEXTS, vocab_size=265, special_tokens=["<s>", "</s>"])


@pytest.fixture
def corpus(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(f"{name}.txt").write_text("".join(f"{name} {text}\n" for text in TEXTS * 9))
    tokenizer.save("tok.json")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "typed"),
    [
        ({}, ""),
        ({"append": "</s>", "prepend": "<s>"}, "--append </s> --prepend <s>"),
        ({"format": "parquet", "columns": ["labels"]}, "--format parquet --columns labels"),
        ({"formats": ["megatron", "nanogpt"]}, "--format megatron --format nanogpt"),
        ({"sequence_length": 16, "shuffle_seed": 3}, "--sequence-length 16 --shuffle-seed 3"),
        ({"workers": 1, "range_bytes": 100}, "--workers 1 --range-bytes 100"),
        ({"allowed_special": "all", "runner": "FnApiRunner"}, "--allowed-special all"),
    ],
)
@pytest.mark.parametrize("form", ["tokenizer", "path"])
def test_the_same_bytes(
    form: str, options: dict[str, Any], typed: str, corpus: Path, tokenizer: Tokenizer
) -> None:
    of: Any = tokenizer if form == "tokenizer" else Path("tok.json")
    summary = bpe_beam.tokenize(["a.txt", Path("b.txt")], tokenizer=of, output="out", **options)
    arguments = ("--input", "a.txt", "b.txt", "--tokenizer", "tok.json", "--output", "cli")
    ran = run("tokenize", *arguments, *typed.split())
    assert ran.code == 0, ran.err
    assert tree(Path("out")) == tree(Path("cli"))
    assert (summary["documents"], summary["output"]) == (54, "out")


def test_a_finished_folder_and_one_of_another_job(corpus: Path, tokenizer: Tokenizer) -> None:
    first = bpe_beam.tokenize("a.txt", tokenizer=tokenizer, output="out")
    again = bpe_beam.tokenize(inputs=["a.txt"], tokenizer=tokenizer, output="out")
    assert (first["was_finished_before"], again["was_finished_before"]) == (None, True)
    data = bpe_beam.shards.open("out")
    assert [tokenizer.decode(data[i]) for i in range(3)] == [f"a {text}" for text in TEXTS]
    with pytest.raises(UsageError, match="holds the work of another job"):
        bpe_beam.tokenize("b.txt", tokenizer=tokenizer, output="out")
    bpe_beam.tokenize("b.txt", tokenizer=tokenizer, output="out", overwrite=True)
    assert tokenizer.decode(bpe_beam.shards.open("out")[0]) == "b hello world"


def test_allowed_tokens_are_taken_as_they_are(corpus: Path) -> None:
    """A list has no commas to divide, and no names that mean all or no tokens."""
    tokens = ["none", "a,b"]
    tokenizer = bpe_beam.train(TEXTS, vocab_size=265, special_tokens=tokens)
    Path("c.txt").write_text("none a,b\n")
    bpe_beam.tokenize("c.txt", tokenizer=tokenizer, output="out", allowed_special=tokens)
    expected = tokenizer.encode("none a,b", allowed_special=tokens)
    assert bpe_beam.shards.open("out")[0].tolist() == expected


def test_a_tokenizer_keeps_its_roles(corpus: Path, tokenizer: Tokenizer) -> None:
    """An equal tokenizer without roles, which the process has cached, does not hide them."""
    with_role = bpe_beam.train(
        TEXTS, vocab_size=265, special_tokens=["<s>", "</s>"], eos_token="</s>"
    )
    assert with_role.fingerprint == tokenizer.fingerprint
    bpe_beam.tokenize("a.txt", tokenizer=tokenizer, output="none", sequence_length=16)
    for output in ("first", "second"):
        with pytest.warns(UserWarning, match="</s> is the tokenizer.s eos_token") as warned:
            bpe_beam.tokenize("a.txt", tokenizer=with_role, output=output, sequence_length=16)
        (warning,) = warned
        assert "give --append '</s>' to put it after each document" in str(warning.message)


def test_a_dry_run_writes_nothing(corpus: Path, tokenizer: Tokenizer) -> None:
    estimate = bpe_beam.tokenize("*.txt", tokenizer=tokenizer, output="out", dry_run=True)
    assert estimate["files"] == 2
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"paths": iter(TEXTS)}, UsageError, "paths must be paths, URLs or globs, got list_iter"),
        ({}, UsageError, "inputs is required"),
        ({"paths": "a.txt", "inputs": "b.txt"}, UsageError, "paths and inputs exclude each other"),
        ({"paths": "a.txt", "apend": "</s>"}, TypeError, "did you mean append"),
        ({"paths": "a.txt", "append": "<e>"}, UsageError, "<e>"),
        ({"paths": "a.txt", "format": "nope"}, UsageError, "formats must be one of"),
    ],
)
def test_wrong_arguments(
    arguments: dict[str, Any], error: Any, message: str, corpus: Path, tokenizer: Tokenizer
) -> None:
    with pytest.raises(error, match=message):
        bpe_beam.tokenize(tokenizer=tokenizer, output="out", **arguments)
    assert not Path("out").exists()


def test_warnings_are_raised(corpus: Path, tokenizer: Tokenizer) -> None:
    framed = bpe_beam.train(TEXTS, vocab_size=265, special_tokens=["<s>"], template="<s> $A")
    with pytest.warns(UserWarning, match="<s>"):
        summary = bpe_beam.tokenize("a.txt", tokenizer=framed, output="out")
    assert summary["warnings"]


def test_its_options_are_in_its_signature() -> None:
    names = inspect.signature(bpe_beam.tokenize).parameters
    assert {"append", "formats", "sequence_length", "dry_run", "overwrite", "inputs"} <= {*names}
    assert "append: Token to put after each document." in (bpe_beam.tokenize.__doc__ or "")

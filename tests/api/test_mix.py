"""`bpe_beam.mix`: the folder that the command writes, to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import run
from made_text import documents
from read_back import tree

import bpe_beam
from bpe_beam.errors import UsageError


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("folders")
    tokenizer = bpe_beam.train(documents(9, seed=1), vocab_size=280)
    made = {}
    for seed, name in enumerate(("web", "code")):
        corpus = folder / f"{name}.txt"
        corpus.write_text("".join(f"{text}\n" for text in documents(30, seed=seed)))
        made[name] = folder / f"tokens-{name}"
        bpe_beam.tokenize(corpus, tokenizer=tokenizer, output=made[name])
    return made


@pytest.mark.parametrize(
    ("options", "typed"),
    [
        ({"tokens": 500, "share": {"web": 0.25, "code": 0.75}}, "--share web=1,code=3"),
        ({"tokens": "0.5k", "share": "web=1,code=1"}, "--share web=1,code=1"),
        (
            {"tokens": 500, "share": ["web=1"], "max_epochs": 2, "skip_tokens": {"web": 20}},
            "--share web=1 --max-epochs 2 --skip-tokens web=20",
        ),
        (
            {"tokens": 500, "share": {"web": 1}, "format": "arrow", "sequence_length": 16},
            "--share web=1 --format arrow --sequence-length 16",
        ),
    ],
)
def test_the_same_bytes(
    folders: dict[str, Path], tmp_path: Path, options: dict[str, Any], typed: str
) -> None:
    summary = bpe_beam.mix(folders, output=tmp_path / "out", **options)
    inputs = [f"{name}={folder}" for name, folder in folders.items()]
    command = ("mix", "--input", *inputs, "--tokens", "500", *typed.split())
    ran = run(*command, "--output", tmp_path / "cli")
    assert ran.code == 0, ran.err
    assert tree(tmp_path / "out") == tree(tmp_path / "cli")
    assert summary["sources"]["web"]["tokens"] > 0


def test_it_is_among_the_names_of_shards() -> None:
    assert bpe_beam.shards.mix is bpe_beam.mix


def test_wrong_arguments(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean web"):
        bpe_beam.mix(folders, output=tmp_path, tokens_of={"webb": 5})
    with pytest.raises(TypeError, match="did you mean tokens"):
        bpe_beam.mix(folders, output=tmp_path, token=5)

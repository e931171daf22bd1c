"""Every public function that takes a path takes a str or a Path, with the same result."""

from __future__ import annotations

import inspect
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run_whole
from sentencepiece_models import BPE, NORMAL, SPECIAL, made_model
from small_tokenizers import SAMPLE, learn
from token_folders import write_folder

import bpe_beam
from bpe_beam import Tokenizer, WordCounts, transforms
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage

TOKENIZER = learn("bytes", (), 40)
PIECES = [*SPECIAL, *((letter, -9, NORMAL) for letter in "\u2581ab")]
CONFIG = {
    "pattern": r"\s+|\S+",
    "num_vocab_tokens": 256,
    "default_vocab_size": 257,
    "default_num_special_tokens": 1,
    "version": "v11",
}
TEKKEN = {
    "config": CONFIG,
    "vocab": [{"rank": n, "token_bytes": b64encode(bytes([n])).decode()} for n in range(256)],
    "special_tokens": [],
}

Call = Callable[[Callable[[Path], Any], Path], Any]
"""Calls a function: gets what makes a path from a Path, and the folder of files to read."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a file of each kind that is read."""
    folder = tmp_path_factory.mktemp("files")
    TOKENIZER.save_pretrained(str(folder / "model"))
    TOKENIZER.save_tiktoken(str(folder / "a.tiktoken"))
    (folder / "vocab.json").write_bytes(TOKENIZER.vocab_json())
    (folder / "merges.txt").write_bytes(TOKENIZER.merges_txt())
    (folder / "a.model").write_bytes(made_model(PIECES, BPE))
    (folder / "tekken.json").write_text(json.dumps(TEKKEN))
    (folder / "a.txt").write_text(SAMPLE)
    (folder / "b.txt").write_text("not read\n")
    run_whole("count", "--input", folder / "a.txt", "--output", folder / "counts")
    write_folder(folder / "tokens", "flat", [[[1, 2], [3]]])
    return folder


def written(call: Callable[[Any], Any], path_of: Callable[[Path], Any], path: Path) -> Any:
    """Return what a function that writes to a path wrote."""
    call(path_of(path))
    found = sorted(path.iterdir()) if path.is_dir() else [path]
    return [(file.name, file.read_bytes()) for file in found if file.is_file()]


READING: dict[str, Call] = {
    "Tokenizer.from_file": lambda of, at: Tokenizer.from_file(of(at / "model/tokenizer.json")),
    "Tokenizer.from_pretrained": lambda of, at: Tokenizer.from_pretrained(of(at / "model")),
    "Tokenizer.from_vocab_and_merges": lambda of, at: Tokenizer.from_vocab_and_merges(
        of(at / "vocab.json"), of(at / "merges.txt")
    ),
    "Tokenizer.from_tiktoken": lambda of, at: Tokenizer.from_tiktoken(of(at / "a.tiktoken")),
    "Tokenizer.from_sentencepiece": lambda of, at: Tokenizer.from_sentencepiece(of(at / "a.model")),
    "Tokenizer.from_tekken": lambda of, at: Tokenizer.from_tekken(of(at / "tekken.json")),
    "evaluate": lambda of, at: bpe_beam.evaluate(TOKENIZER, of(at / "counts")),
    "evaluate on files": lambda of, at: bpe_beam.evaluate(TOKENIZER, of(at / "a.txt")),
    "WordCounts.read": lambda of, at: WordCounts.read(Storage(), of(at / "counts")).most_common(99),
    "train": lambda of, at: bpe_beam.train(of(at / "a.txt"), vocab_size=280),
    "train of inputs": lambda of, at: bpe_beam.train(inputs=[of(at / "a.txt")], vocab_size=280),
    "train of counts": lambda of, at: bpe_beam.train(counts=of(at / "counts"), vocab_size=280),
    "count": lambda of, at: bpe_beam.count(of(at / "a.txt")).most_common(99),
    "shards.open": lambda of, at: bpe_beam.shards.open(of(at / "tokens")).to_arrow().read_all(),
    "transforms.ReadCounts": lambda of, at: transforms.ReadCounts(of(at / "counts")).folder,
    "transforms.ReadDocuments": lambda of, at: (
        transforms.ReadDocuments([of(at / "*.txt")], exclude=[of(at / "b.txt")]).plan
    ),
}
WRITING: dict[str, Call] = {
    "Tokenizer.save": lambda of, at: written(TOKENIZER.save, of, at / "t.json"),
    "Tokenizer.save_pretrained": lambda of, at: written(TOKENIZER.save_pretrained, of, at / "t"),
    "Tokenizer.save_tiktoken": lambda of, at: written(TOKENIZER.save_tiktoken, of, at / "a.tik"),
    "Tokenizer.save_sentencepiece": lambda of, at: written(
        Tokenizer.from_sentencepiece(str(at.parent / "a.model")).save_sentencepiece,
        of,
        at / "a.model",
    ),
    "transforms.WriteCounts": lambda of, at: transforms.WriteCounts(of(at)).folder,
    "transforms.WriteTokens": lambda of, at: transforms.WriteTokens(of(at), TOKENIZER).folder,
    "transforms.ReadDocuments of rejects": lambda of, at: (
        transforms.ReadDocuments([str(at.parent / "a.txt")], rejects=of(at / "rejects")).rejects
    ),
}


@pytest.mark.parametrize("name", READING)
def test_reading(files: Path, name: str) -> None:
    assert READING[name](Path, files) == READING[name](str, files)


@pytest.mark.parametrize("name", WRITING)
def test_writing(files: Path, name: str) -> None:
    folder = files / name.replace(" ", "-")
    found = []
    for path_of in (str, Path):
        folder.mkdir()
        found.append(WRITING[name](path_of, folder))
        folder.rename(files / f"{folder.name}-{path_of.__name__}")
    assert found[0] == found[1]


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions and methods with their names."""
    yield "train", bpe_beam.train
    yield "count", bpe_beam.count
    for name in bpe_beam.shards.__all__:
        yield f"shards.{name}", getattr(bpe_beam.shards, name)
    for name in transforms.__all__:
        yield f"transforms.{name}", getattr(transforms, name).__init__
    for owner in (Tokenizer, WordCounts):
        for name in vars(owner):
            if not name.startswith("_") and callable(getattr(owner, name)):
                yield f"{owner.__name__}.{name}", getattr(owner, name)


def test_each_function_with_a_path_is_tested() -> None:
    names = ("path", "folder", "url", "inputs", "exclude", "rejects", "vocab_path", "merges_path")
    tested = {name.partition(" ")[0] for name in (*READING, *WRITING)}
    with_path = set()
    for name, function in public_functions():
        for parameter in inspect.signature(function).parameters.values():
            takes_path = "PathName" in str(parameter.annotation)
            if parameter.annotation is not Any:  # that of an option
                assert takes_path or parameter.name not in names, f"{name} of {parameter.name}"
            if takes_path:
                with_path.add(name)
    assert len(with_path) > 10
    assert with_path <= tested


@pytest.mark.parametrize("wrong", [None, 5, b"a.json"])
def test_what_is_no_path(wrong: Any) -> None:
    for call, name in (
        (Tokenizer.from_file, "path"),
        (TOKENIZER.save, "path"),
        (Tokenizer.from_pretrained, "name"),
        (bpe_beam.shards.open, "url"),
    ):
        with pytest.raises(UsageError, match=f"^{name} must be a path or a URL, got {wrong!r}"):
            call(wrong)

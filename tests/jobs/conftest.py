"""A tokenizer of all bytes and three merges, in a file."""

from __future__ import annotations

import pytest

from bpe_beam.tokenizer.tokenizer import Tokenizer


def byte_symbols() -> list[str]:
    """Return the byte-level alphabet in order of code points."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(byte) for byte in kept] + [chr(0x100 + i) for i in range(256 - len(kept))]


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a tokenizer with two special tokens; one would clear a terminal."""
    vocab = ["<|end|>", "<\x1b[2J>", *byte_symbols(), "he", "Ġhe", "hel"]
    merges = [("h", "e"), ("Ġ", "he"), ("he", "l")]
    path = str(tmp_path_factory.mktemp("tokenizer") / "tokenizer.json")
    Tokenizer.from_learned(vocab, merges, ["<|end|>", "<\x1b[2J>"]).save(path)
    return path

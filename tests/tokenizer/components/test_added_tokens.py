"""Added tokens: many, long ones, and how they are found."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tokenizer_files import BPE, added, file

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError

LOAD_SECONDS = 2.0


def test_many_added_tokens_are_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [added(100 + i, "a" * (1 + i) + str(i), special=True) for i in range(2000)]
    begin = time.process_time()
    tokenizer = Tokenizer.from_json(json.dumps(file(BPE, added_tokens=tokens)))
    with pytest.raises(DataError, match='the text has the special token "aaa2" at character 2'):
        tokenizer.encode("b aaa2", disallowed_special="error")
    assert time.process_time() - begin < LOAD_SECONDS


def test_added_tokens_that_take_too_much_memory() -> None:
    tokens = [added(100 + i, f"{i:04000}") for i in range(2100)]
    with pytest.raises(UsageError, match="added_tokens must have at most 8,388,608 characters"):
        Tokenizer.from_json(json.dumps(file(BPE, added_tokens=tokens)))


pytestmark = pytest.mark.quick


def word_level(**parts: Any) -> str:
    """A tokenizer.json around a model of one word."""
    model = {"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"}
    return json.dumps({"version": "1.0", "model": model, **parts})


def test_an_added_token_of_absurd_length() -> None:
    token = {
        "id": 1, "content": "a" * 10**6, "single_word": False, "lstrip": False, "rstrip": False,
        "normalized": False, "special": True,
    }  # fmt: skip
    with pytest.raises(
        UsageError,
        match=r"added_tokens\[0\]: a token must have at most 4,096 char",
    ):
        Tokenizer.from_json(word_level(added_tokens=[token]))

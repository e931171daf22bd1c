"""Tokenizers that would take endless time or memory, or mean something else elsewhere: refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components.patterns import Pattern

pytestmark = pytest.mark.quick


def word_level(**parts: Any) -> str:
    """A tokenizer.json around a model of one word."""
    model = {"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"}
    return json.dumps({"version": "1.0", "model": model, **parts})


def replace(old: str, new: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def test_text_that_a_normalizer_makes_huge() -> None:
    for steps in (
        [replace("a", "b" * 10**6)] * 2,
        [replace("a", "a" * 30)] * 9,
        [
            {"type": "Prepend", "prepend": "a" * 1000},
            replace("a", "a" * 30),
            replace("a", "a" * 30),
        ],
    ):
        tokenizer = Tokenizer.from_json(
            word_level(normalizer={"type": "Sequence", "normalizers": steps})
        )
        for encode in (tokenizer.encode, tokenizer.encode_with_offsets):
            with pytest.raises(DataError, match="over 32 times as long: check the Replace"):
                encode("a" * 3000)
        with pytest.raises(DataError, match="over 32 times as long"):
            tokenizer.encode_batch(["a" * 3000])
    # Short texts may become long, and long ones some times longer.
    short = Tokenizer.from_json(word_level(normalizer=replace("a", "b" * 1000)))
    assert short.encode("a" * 100) == [0]
    longer = Tokenizer.from_json(word_level(normalizer=replace("a", "b" * 30)))
    assert longer.encode("a" * 100_000) == [0]


def test_a_post_processor_of_ids_that_are_not_there() -> None:
    post = {"type": "BertProcessing", "sep": ["[SEP]", 5], "cls": ["<unk>", 0]}
    with pytest.raises(UsageError, match=r'post_processor: it inserts ".SEP." with the id 5'):
        Tokenizer.from_json(word_level(post_processor=post))


def test_a_delimiter_of_more_than_a_character() -> None:
    for delimiter in ("", "ab"):
        part = {"type": "CharDelimiterSplit", "delimiter": delimiter}
        with pytest.raises(UsageError, match=r"delimiter must be one character, got '(ab)?'"):
            Tokenizer.from_json(word_level(pre_tokenizer=part))


def test_lines_begin_and_end() -> None:
    """As in Hugging Face, at each line and not only at the text."""
    assert Pattern(regex="^a|b$").spans("a b\nab\na") == [(0, 1), (2, 3), (4, 5), (5, 6), (7, 8)]


@pytest.mark.slow
def test_ranks_that_fall_into_endless_pairs(tmp_path: Path) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b"a" * n for n in range(4000, 1, -1)]
    lines = (base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    (tmp_path / "t").write_bytes(b"".join(lines))
    # Eight million pairs at half of this; nobody should have to wait for them.
    with pytest.raises(UsageError, match=r"more than 2\^22 pairs"):
        Tokenizer.from_tiktoken(str(tmp_path / "t"))


def test_a_text_that_fails_leaves_the_encoder_as_it_was() -> None:
    tokenizer = Tokenizer.from_learned(["a", "b", "ab"], [("a", "b")])
    for _ in range(3):
        with pytest.raises(DataError, match="character 'c'"):
            tokenizer.encode("abc")
        assert tokenizer.encode_batch(pa.array(["ab", "ba"])) == [[2], [1, 0]]

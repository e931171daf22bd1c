"""Files of other tokenizers: what they are is said, and what to use instead."""

from __future__ import annotations

import gzip

import pytest

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError

pytestmark = pytest.mark.quick

# The first pieces of a model as SentencePiece writes it: text, score, type.
SENTENCEPIECE = b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02\n\x0c\n\x03<s>\x15\0\0\0\0\x18\x03"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"IQ== 0\nIg== 1\n", "this is a .tiktoken file.*from_tiktoken"),
        (b"IQ== 0", "this is a .tiktoken file"),
        (SENTENCEPIECE, "this is a SentencePiece model.*from_sentencepiece"),
        (b"#version: 0.2\na b\n", "this is a merges.txt.*from_vocab_and_merges"),
        (b'{"a": 0, "b": 1}', "this is a vocab.json.*from_vocab_and_merges"),
        (
            b'{"config": {}, "vocab": [{"rank": 0, "token_bytes": "AA=="}]}',
            "this is a tekken.json.*from_tekken",
        ),
        (b'{"tokenizer_class": "GPT2Tokenizer"}', "this is a tokenizer_config.json"),
        (gzip.compress(b"{}"), "this file is compressed by gzip"),
        (b"PK\x03\x04", "this is a zip archive"),
        (b"\xef\xbb\xbf{}", "the file begins with a byte order mark"),
        ("{}".encode("utf-16"), "this is UTF-16"),
        (b"version https://git-lfs.github.com/spec/v1\n", "this is a pointer of Git LFS"),
        (b"<!DOCTYPE html>", "this is a page of HTML"),
        (b"[PAD]\n[UNK]\n", "this is a vocab.txt: give its folder"),
    ],
    ids=[
        "tiktoken",
        "one rank",
        "sentencepiece",
        "merges",
        "vocab",
        "tekken",
        "config",
        "gzip",
        "zip",
        "mark",
        "utf16",
        "lfs",
        "html",
        "vocab.txt",
    ],
)
def test_a_file_of_another_kind(data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Tokenizer.from_json(data)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"{}", b"[]", b"\x0a\x0b", b"IQ== x\n", b'{"a": 0.5}', b'{"a": {}}']
)
def test_what_nobody_can_tell_keeps_its_message(data: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        Tokenizer.from_json(data)
    assert "this is a" not in str(caught.value)

"""Files of other tokenizers: what they are is said, and what to use instead."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.files.json_node import MAX_FILE_BYTES

pytestmark = pytest.mark.quick

# The first pieces of a model as SentencePiece writes it: text, score, type.
SENTENCEPIECE = b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02\n\x0c\n\x03<s>\x15\0\0\0\0\x18\x03"

SAFETENSORS = b"\x0a" + bytes(7) + b'{"a":{ }}  ' + bytes(4)


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
        (b"\n <HTML lang=en>", "this is a page of HTML"),
        (b"GGUF\3\0\0\0", "this is a GGUF file of llama.cpp"),
        (b"\x80\4\x95", "this is a pickle of Python"),
        (b"PK\x03\x04" + bytes(26) + b"archive/data.pkl", "this is a file of PyTorch"),
        (SAFETENSORS, "this is a safetensors file"),
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
        "html with a line before",
        "gguf",
        "pickle",
        "pytorch",
        "safetensors",
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


def from_vocab_txt(path: Path) -> Tokenizer:
    path.rename(path.with_name("vocab.txt"))
    return Tokenizer.from_pretrained(str(path.parent))


def from_vocab(path: Path) -> Tokenizer:
    merges = path.with_name("merges.txt")
    merges.write_bytes(b"a b\n")
    return Tokenizer.from_vocab_and_merges(str(path), str(merges))


def from_merges(path: Path) -> Tokenizer:
    vocab = path.with_name("vocab.json")
    vocab.write_bytes(b'{"a": 0, "b": 1, "ab": 2}')
    return Tokenizer.from_vocab_and_merges(str(vocab), str(path))


def from_settings(path: Path) -> Tokenizer:
    path.rename(path.with_name("tokenizer_config.json"))
    path.with_name("vocab.txt").write_bytes(b"[UNK]\na\n")
    return Tokenizer.from_pretrained(str(path.parent))


READERS: dict[str, Callable[[Path], Tokenizer]] = {
    "tokenizer.json": lambda path: Tokenizer.from_file(str(path)),
    "tiktoken": lambda path: Tokenizer.from_tiktoken(str(path)),
    "model": lambda path: Tokenizer.from_sentencepiece(str(path)),
    "tekken": lambda path: Tokenizer.from_tekken(str(path)),
    "vocab.json": from_vocab,
    "merges.txt": from_merges,
    "vocab.txt": from_vocab_txt,
    "settings": from_settings,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xef\xbb\xbfIQ== 0\n", "the file begins with a byte order mark"),
        (gzip.compress(b"IQ== 0\n"), "compressed by gzip"),
        (b"version https://git-lfs.github.com/spec/v1\noid a\nsize 1\n", "a pointer of Git LFS"),
        (b"<!doctype html><p>404", "a page of HTML"),
        (SAFETENSORS, "a safetensors file"),
    ],
    ids=["mark", "gzip", "lfs", "html", "safetensors"],
)
def test_every_reader_says_what_a_file_is(
    reader: str, data: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "given"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=f"/(given|vocab.txt|tokenizer_config.json): .*{said}"):
        READERS[reader](path)


@pytest.mark.parametrize(
    ("reader", "data", "said"),
    [
        ("tiktoken", SENTENCEPIECE, "this is a SentencePiece model"),
        ("tiktoken", b'{"version": "1.0", "model": {}}', r"this is a tokenizer.json: .*from_file"),
        ("model", b"IQ== 0\n", "this is a .tiktoken file"),
        ("tekken", b'{"a": 0}', "this is a vocab.json"),
        ("vocab.json", b'{"version": "1.0", "model": {}}', "this is a tokenizer.json"),
        ("merges.txt", b'{"a": 0, "b": 1}', "this is a vocab.json"),
        ("vocab.txt", b'{"a": 0}', "this is a vocab.json"),
    ],
)
def test_files_of_other_readers(reader: str, data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "given"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=said):
        READERS[reader](path)


def test_a_damaged_file_of_the_right_kind_keeps_its_message(tmp_path: Path) -> None:
    path = tmp_path / "given"
    path.write_bytes(b"IQ== 0\nIQ== 1\n")
    with pytest.raises(UsageError, match="line 2: the token is repeated"):
        Tokenizer.from_tiktoken(str(path))


def test_a_merge_of_numbers_is_no_line_of_tiktoken(tmp_path: Path) -> None:
    vocab, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    vocab.write_bytes(b'{"1": 0, "0": 1, "10": 2}')
    merges.write_bytes(b"1 0\n")
    assert Tokenizer.from_vocab_and_merges(str(vocab), str(merges)).merges == [("1", "0")]


def test_a_file_too_large_to_read_is_recognized(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    with path.open("wb") as file:
        file.write(b"GGUF")
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(UsageError, match="this is a GGUF file"):
        Tokenizer.from_file(str(path))


@pytest.mark.parametrize("reader", sorted(READERS.keys() - {"merges.txt"}))
def test_an_empty_file(reader: str, tmp_path: Path) -> None:
    """That of merges is sound: there are none."""
    (path := tmp_path / "given").touch()
    with pytest.raises(UsageError, match="the file is empty: get an intact copy"):
        READERS[reader](path)

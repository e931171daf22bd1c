"""Recognition of files of another kind than the one asked for, with the file to use instead.

Only for messages: nothing here is read as a tokenizer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.files.json_node import MAX_FILE_BYTES

FileKind: TypeAlias = Literal[
    "tokenizer.json", ".tiktoken", ".model", "tekken.json", "vocab.json", "merges.txt",
    "vocab.txt", "tokenizer_config.json",
]  # fmt: skip

_TIKTOKEN_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?\n?")
_GIVE = "give the tokenizer.json of the same model, or the folder that has it"
_WEIGHTS = f"which has no tokenizer: {_GIVE}"
_DECOMPRESS = "decompress it first"
_BY_BEGINNING = {
    b"\x1f\x8b": f"this file is compressed by gzip: {_DECOMPRESS}",
    b"\x28\xb5\x2f\xfd": f"this file is compressed by zstd: {_DECOMPRESS}",
    b"\xfd7zXZ\0": f"this file is compressed by xz: {_DECOMPRESS}",
    b"BZh": f"this file is compressed by bzip2: {_DECOMPRESS}",
    b"GGUF": f"this is a GGUF file of llama.cpp, whose tokenizer is not read: {_GIVE}",
    **{bytes([0x80, n]): f"this is a pickle of Python, {_WEIGHTS}" for n in range(2, 6)},
    b"\xef\xbb\xbf": "the file begins with a byte order mark: save it as UTF-8 without one",
    b"\xff\xfe": "this is UTF-16: save it as UTF-8",
    b"\xfe\xff": "this is UTF-16: save it as UTF-8",
    b"version https://git-lfs": "this is a pointer of Git LFS: get the file itself by git lfs pull",
    b"\x89HDF": f"this is an HDF5 file, {_WEIGHTS}",
}
_HTML = re.compile(rb"\s*(<!--.*?-->\s*)?<(!doctype html|html)\b", re.IGNORECASE | re.DOTALL)
_HALF = (
    "the half of a tokenizer: read it in Python with "
    "Tokenizer.from_vocab_and_merges(vocab, merges), and save() it as a tokenizer.json"
)
_REMEDIES: dict[FileKind, str] = {
    "tokenizer.json": "read it with Tokenizer.from_file(path)",
    ".tiktoken": (
        "which has tokens and ranks but no pre-tokenizer: read it in Python with "
        "Tokenizer.from_tiktoken(path, pretokenizer=...), and save() it as a tokenizer.json"
    ),
    ".model": "read it with Tokenizer.from_sentencepiece(path)",
    "tekken.json": "read it with Tokenizer.from_tekken(path)",
    "vocab.json": _HALF,
    "merges.txt": _HALF,
    "vocab.txt": "give its folder instead, where its settings are, too",
    "tokenizer_config.json": "give the tokenizer.json that is published next to it",
}
_NAMES: dict[FileKind, str] = {
    ".tiktoken": "a .tiktoken file",
    ".model": "a SentencePiece model",
    "tekken.json": "a tekken.json of Mistral's",
}


@contextmanager
def explained(data: bytes | str, source: str, wanted: FileKind) -> Iterator[None]:
    """Yield once; refusals by the block say what the file is instead, if known."""
    try:
        yield
    except UsageError as error:
        raise explanation(error, data, source, wanted) from None


def explanation(error: UsageError, data: bytes | str, source: str, wanted: FileKind) -> UsageError:
    """Return the refusal of a file that says what the file is instead, or the error itself."""
    other = describe_foreign_file(data, wanted) if len(data) <= MAX_FILE_BYTES else None
    return error if other is None else UsageError(f"{source}: {other}")


def describe_foreign_file(text: bytes | str, wanted: FileKind = "tokenizer.json") -> str | None:
    """Return what a file is instead of the kind wanted, and the remedy; None if that is unknown."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if not data:
        return "the file is empty: get an intact copy"
    if description := describe_beginning(data[:4096], len(data)):
        return description
    kind = _kind_of(data)
    if kind is None or kind == wanted:
        return None
    link = ": " if _REMEDIES[kind].startswith(("read", "give")) else ", "
    return f"this is {_NAMES.get(kind, f'a {kind}')}{link}{_REMEDIES[kind]}"


def describe_beginning(data: bytes, size: int) -> str | None:
    """Return what a file is that no tokenizer's file begins like, and the remedy."""
    for beginning, description in _BY_BEGINNING.items():
        if data[: len(beginning)].lower() == beginning.lower():
            return description
    if data.startswith(b"PK\x03\x04"):
        if b"/data.pkl" in data:
            return f"this is a file of PyTorch, {_WEIGHTS}"
        return "this is a zip archive: give the file in it"
    if _HTML.match(data):
        return "this is a page of HTML, not the file: download the file itself"
    if data[8:10] == b'{"' and int.from_bytes(data[:8], "little") < size:
        return f"this is a safetensors file, {_WEIGHTS}"
    return None


def _kind_of(data: bytes) -> FileKind | None:
    """Return the kind of a tokenizer's file by its beginning or by its keys."""
    if _TIKTOKEN_LINE.fullmatch(data[: data.find(b"\n") + 1] or data):
        return ".tiktoken"
    if data[:1] == b"\x0a" and b"\0" in data[:4096]:  # a protobuf whose first field is a message
        return ".model"
    if data.startswith(b"#version:"):
        return "merges.txt"
    if data.startswith(b"[PAD]"):
        return "vocab.txt"
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    if "model" in value:
        return "tokenizer.json"
    rows = value.get("vocab")
    if isinstance(rows, list) and rows and isinstance(rows[0], dict) and "token_bytes" in rows[0]:
        return "tekken.json"
    if value and all(type(number) is int for number in value.values()):
        return "vocab.json"
    if "tokenizer_class" in value or "added_tokens_decoder" in value:
        return "tokenizer_config.json"
    return None

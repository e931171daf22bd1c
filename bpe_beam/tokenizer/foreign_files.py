"""Recognition of files that are not a `tokenizer.json`, with the file to use instead.

Only for messages: nothing here is read as a tokenizer.
"""

from __future__ import annotations

import json
import re

_TIKTOKEN_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?\n?")
_BESIDE = "give the tokenizer.json that is published beside it"
_BY_BEGINNING = {
    b"\x1f\x8b": "this file is compressed by gzip: decompress it first",
    b"PK\x03\x04": "this is a zip archive: give the file in it",
    b"\xef\xbb\xbf": "the file begins with a byte order mark: save it as UTF-8 without one",
    b"\xff\xfe": "this is UTF-16: save it as UTF-8",
    b"\xfe\xff": "this is UTF-16: save it as UTF-8",
    b"version https://git-lfs": "this is a pointer of Git LFS: get the file itself by git lfs pull",
    b"<!doctype html": "this is a page of HTML, not the file: download the file itself",
    b"<html": "this is a page of HTML, not the file: download the file itself",
    b"[PAD]": "this is a vocab.txt: give its folder, which Tokenizer.from_pretrained reads",
}


def describe_foreign_file(text: bytes | str) -> str | None:
    """Return what a file is instead of a tokenizer.json, and the remedy; None if it is unknown.

    Args:
        text: The whole file.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    for beginning, found in _BY_BEGINNING.items():
        if data[: len(beginning)].lower() == beginning.lower():
            return found
    if _TIKTOKEN_LINE.fullmatch(data[: data.find(b"\n") + 1] or data):
        return (
            "this is a .tiktoken file, which has tokens and ranks but no pre-tokenizer: read it in "
            "Python with Tokenizer.from_tiktoken(path, pretokenizer=...), and save() it as a "
            "tokenizer.json"
        )
    if data[:1] == b"\x0a" and b"\0" in data[:4096]:  # a protobuf whose first field is a message
        return "this is a SentencePiece model: read it with Tokenizer.from_sentencepiece(path)"
    if data.startswith(b"#version:"):
        return (
            "this is a merges.txt, the half of a tokenizer: read it in Python with "
            "Tokenizer.from_vocab_and_merges(vocab, merges), and save() it as a tokenizer.json"
        )
    return _json_of_others(data)


def _json_of_others(data: bytes) -> str | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "model" in value:
        return None
    rows = value.get("vocab")
    if isinstance(rows, list) and rows and isinstance(rows[0], dict) and "token_bytes" in rows[0]:
        return "this is a tekken.json of Mistral's: read it with Tokenizer.from_tekken(path)"
    if value and all(type(number) is int for number in value.values()):
        return (
            "this is a vocab.json, the half of a tokenizer: read it in Python with "
            "Tokenizer.from_vocab_and_merges(vocab, merges), and save() it as a tokenizer.json"
        )
    if "tokenizer_class" in value or "added_tokens_decoder" in value:
        return f"this is a tokenizer_config.json: {_BESIDE}"
    return None

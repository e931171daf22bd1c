"""Recognition of files that are not a `tokenizer.json`, with the file to use instead.

Only for messages: nothing here is read as a tokenizer.
"""

from __future__ import annotations

import json
import re

_TIKTOKEN_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?\n?")
_BESIDE = "give the tokenizer.json that is published beside it"


def describe_foreign_file(text: bytes | str) -> str | None:
    """Return what a file is instead of a tokenizer.json, and the remedy; None if it is unknown.

    Args:
        text: The whole file.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
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

"""Tokens and parts of a tokenizer, written for people.

A token of a byte-level tokenizer stands in files as letters for bytes (`ãĢĤ`); here it is the text
that it decodes to (`'。'`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.patterns import Pattern, scanner_of


def text_of(token: str, in_bytes: bool) -> str | bytes:
    """Return the text that a token stands for.

    Args:
        token: The token as the vocabulary has it.
        in_bytes: Whether its characters are letters for bytes.

    Returns:
        The text; the bytes, if they are not whole characters of UTF-8.
    """
    if not in_bytes or not byte_level.CHAR_TO_BYTE.keys() >= set(token):
        return token
    data = byte_level.to_bytes(token)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def describe(part: object) -> str:
    """Return what a normalizer, pre-tokenizer, post-processor or decoder is, in words.

    Settings follow the name; the steps of a sequence follow each other, behind "then".
    """
    if part is None:
        return "none"
    kind = str(getattr(part, "JSON_TYPE", type(part).__name__))
    fields = [(field.name, getattr(part, field.name)) for field in dataclasses.fields(part)]  # type: ignore[arg-type]
    if kind == "Sequence":
        return " then ".join(describe(step) for step in fields[0][1]) or "nothing"
    settings = ", ".join(f"{name} {_value(value)}" for name, value in fields)
    return f"{kind} ({settings})" if settings else kind


def _value(value: object) -> str:
    if isinstance(value, Pattern):
        return scanner_of(value) or repr(value.value)
    if value is None or isinstance(value, bool):
        return {None: "default", True: "yes", False: "no"}[value]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(map(_value, value))
    if dataclasses.is_dataclass(value):
        return str(getattr(value, "id", value))
    if isinstance(value, dict):
        return " ".join(map(str, value))
    return repr(value)

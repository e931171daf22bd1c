"""Tokens and components of a tokenizer in readable form.

Files write the tokens of a byte-level tokenizer as one letter a byte (`ãĢĤ`); these functions
return the text (`'。'`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.patterns import Pattern, scanner_of


def text_of(token: str, in_bytes: bool) -> str | bytes:
    """Return the text of a token.

    Args:
        token: The token in the vocabulary.
        in_bytes: Whether its characters are in the byte-level alphabet.

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


def describe(component: object) -> str:
    """Return a normalizer, pre-tokenizer, post-processor or decoder in words.

    The settings follow the name; the steps of a sequence are joined by "then".
    """
    if component is None:
        return "none"
    kind = str(getattr(component, "JSON_TYPE", type(component).__name__))
    names = [field.name for field in dataclasses.fields(component)]  # type: ignore[arg-type]
    fields = [(name, getattr(component, name)) for name in names]
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

"""Strict readers of the values in our JSON files: each error names the position of the value.

`tokenizer/json_node.py` is stricter on another kind of file: tokenizers that other programs wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from bpe_beam.messages import shortened

_SHA256 = re.compile("[0-9a-f]{64}")
_MAX_INTEGER = 2**63 - 1
_EXPECTED = {
    str: "a string",
    int: f"an integer from 0 to {_MAX_INTEGER}",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


def parse_json(data: bytes) -> Any:
    """Return the JSON values of a file.

    Raises:
        ValueError: The bytes are not JSON, an object repeats a key, or a number is not finite.
    """
    try:
        return json.loads(data, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def read_object(
    value: object, path: str, types: Mapping[str, type], optional: Mapping[str, type] | None = None
) -> dict[str, Any]:
    """Return an object after checking its keys and their types.

    Args:
        value: Any JSON value.
        path: The JSON path of the value, for errors; "" is the top level.
        types: The keys that the object must have, with their types.
        optional: The only other keys that the object may have, with their types.

    Raises:
        ValueError: The value is not such an object.
    """
    fields: dict[str, Any] = check_type(value, dict, path)
    where = path or "the top level"
    allowed = {**types, **(optional or {})}
    for key in fields:
        if key not in allowed:
            raise ValueError(
                f"{where}: unknown key {shortened(key)}; allowed: {', '.join(allowed)}"
            )
    for key, wanted in allowed.items():
        if key in fields:
            check_type(fields[key], wanted, f"{path}.{key}" if path else key)
        elif key in types:
            raise ValueError(f"{where}: the key {key!r} is missing")
    return fields


def check_type(value: object, wanted: type, path: str) -> Any:
    """Return the value after checking its type.

    Args:
        value: Any JSON value.
        wanted: `str`, `int` (from 0 to 2^63 - 1), `bool`, `dict` or `list`.
        path: The JSON path of the value, for errors; "" is the top level.

    Raises:
        ValueError: The value is of another type.
    """
    # The exact type: True is an int to isinstance.
    if type(value) is not wanted or (type(value) is int and not 0 <= value <= _MAX_INTEGER):
        raise ValueError(
            f"{path or 'the top level'} must be {_EXPECTED[wanted]}, got {shortened(value)}"
        )
    return value


def check_sha256(value: object, path: str) -> str:
    """Return the value after checking that it is a SHA-256 in hex.

    Args:
        value: Any JSON value.
        path: The JSON path of the value, for errors.

    Raises:
        ValueError: The value is not 64 lower-case hex digits.
    """
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError(
            f"{path} must be a SHA-256 of 64 lower-case hex digits, got {shortened(value)}"
        )
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"an object repeats the key {shortened(key)}")
        fields[key] = value
    return fields


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")

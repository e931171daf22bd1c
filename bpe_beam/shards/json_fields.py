"""JSON values read strictly: what a manifest may hold, and errors that name the place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_SHA256 = re.compile("[0-9a-f]{64}")
_MAX_INTEGER = 2**63 - 1
_EXPECTED = {
    str: "a string",
    int: f"an integer from 0 to {_MAX_INTEGER}",
    dict: "an object",
    list: "a list",
}


def parsed(data: bytes) -> Any:
    """Return the JSON values of a file.

    Raises:
        ValueError: It is not JSON, an object has a key twice, or a number is not finite.
    """
    try:
        return json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def read_object(value: object, place: str, types: Mapping[str, type]) -> dict[str, Any]:
    """Return an object after checking its keys and their types.

    Args:
        value: Any JSON value.
        place: Where the value is, for errors; "" is the top level.
        types: The keys that the object must have, all of them and no other, with their types.

    Raises:
        ValueError: The value is not such an object.
    """
    fields: dict[str, Any] = check_type(value, dict, place)
    where = place or "the top level"
    for key in fields:
        if key not in types:
            raise ValueError(f"{where}: unknown key {shown(key)}; allowed: {', '.join(types)}")
    for key, wanted in types.items():
        if key not in fields:
            raise ValueError(f"{where}: the key {key!r} is missing")
        check_type(fields[key], wanted, f"{place}.{key}" if place else key)
    return fields


def check_type(value: object, wanted: type, place: str) -> Any:
    """Return the value.

    Args:
        value: Any JSON value.
        wanted: `str`, `int` (from 0 to 2^63 - 1), `dict` or `list`.
        place: Where the value is, for errors.

    Raises:
        ValueError: The value is of another type.
    """
    # The exact type: True is an int to isinstance.
    if type(value) is not wanted or (type(value) is int and not 0 <= value <= _MAX_INTEGER):
        raise ValueError(
            f"{place or 'the top level'} is {shown(value)}; expected {_EXPECTED[wanted]}"
        )
    return value


def shown(value: object) -> str:
    """Return a value as a message shows it: at most some 80 characters."""
    if isinstance(value, (dict, list)):
        return _EXPECTED[type(value)]
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def check_sha256(value: object, place: str) -> str:
    """Return the value.

    Args:
        value: Any JSON value.
        place: Where the value is, for errors.

    Raises:
        ValueError: The value is not 64 lower-case hex digits.
    """
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError(f"{place} is {shown(value)}; expected a SHA-256, 64 lower-case hex digits")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"the key {shown(key)} stands twice in an object")
        fields[key] = value
    return fields


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")

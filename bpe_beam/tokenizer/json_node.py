"""Strict reading of JSON that may be hostile: every error has the file and the JSON path."""

from __future__ import annotations

import json
from typing import Any, NoReturn, cast

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.record import record
from bpe_beam.tokenizer.models import check_id

_SHOWN_PATH = 160
"""The most characters of a path in a message; the middle of a longer path is omitted."""

MAX_FILE_BYTES = 1 << 30
"""The most bytes of a tokenizer's file."""

MISSING = object()
"""The value of a key that a file does not have."""


def quote(text: str) -> str:
    """Return a string as JSON, without escapes of characters beyond ASCII."""
    # json.dumps searches for the same function at each call; a large vocabulary has many tokens.
    return json.encoder.encode_basestring(text)


class _RepeatedKey(dict[str, Any]):
    """An object with a repeated key: found while parsing, refused where its path is known."""

    key: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    repeated = _RepeatedKey(plain)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            repeated.key = key
            break
        seen.add(key)
    return repeated


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _parse_natively(data: bytes | str) -> Any:
    """Return the same as `json`, several times as fast; NotImplemented where `json` may fail."""
    from bpe_beam import _native

    try:
        return _native.read_json(data.encode() if isinstance(data, str) else data)
    except UnicodeEncodeError:
        return NotImplemented


def parse(data: bytes | str, source: str) -> Any:
    """Return the value of JSON that may be hostile.

    Args:
        data: The file's bytes, or the same as text.
        source: The name of the file in messages.

    Raises:
        UsageError: The data is too large, not UTF-8, not JSON, or nested too deeply; the message
            has the position.
    """
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{source}: {len(data)} bytes; a tokenizer has at most {MAX_FILE_BYTES}")
    value = _parse_natively(data)
    if value is not NotImplemented:
        return value
    try:
        text = data if isinstance(data, str) else str(data, "utf-8")
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except UsageError:
        raise
    except UnicodeDecodeError as error:
        raise UsageError(f"{source}: byte {error.start}: not UTF-8: {error.reason}") from None
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{source}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise UsageError(f"{source}: not a tokenizer: nested too deeply") from None
    except ValueError as error:  # NaN, or an integer of thousands of digits
        raise UsageError(f"{source}: not JSON: {error}") from None


@record
class Node:
    """A value in a JSON file with its path, which every error has.

    Attributes:
        source: The name of the file in messages.
        path: The JSON path from the root.
        value: The value; MISSING for a key that the file does not have.
    """

    source: str
    path: str
    value: Any

    def refuse(self, why: str) -> NoReturn:
        """Raise UsageError with the file and path before the reason."""
        path = self.path
        if len(path) > _SHOWN_PATH:
            path = f"{path[: _SHOWN_PATH // 2]}...{path[-_SHOWN_PATH // 2 :]}"
        location = f"{self.source}: {path}" if path else self.source
        raise UsageError(f"{location}: {why}")

    def expect(self, *allowed: object) -> None:
        """Check that the value is one of those allowed."""
        # The types as well: in Python, 1 == True and 0 == False.
        if any(type(self.value) is type(one) and self.value == one for one in allowed):
            return
        if self.value is MISSING:
            self.refuse("missing")
        must = " or ".join(json.dumps(one) for one in allowed if one is not MISSING)
        self.refuse(
            f"{shortened(self.value)} is not supported by this version of bpe-beam; must be {must}"
        )

    def object(self) -> dict[str, Any]:
        """Return the value, which must be an object without repeated keys."""
        if self.value is MISSING:
            self.refuse("missing")
        if not isinstance(self.value, dict):
            self.refuse(f"{shortened(self.value)} is not an object")
        if isinstance(self.value, _RepeatedKey):
            self.refuse(f"the key {quote(self.value.key)} is repeated")
        return self.value

    def fields(self, *names: str) -> dict[str, Node]:
        """Return the object's fields; a field that the file does not have is MISSING."""
        value = self.object()
        for name in value:
            if name not in names:
                self.refuse(f"unknown key {shortened(name)}; the keys here are {', '.join(names)}")
        return {name: self.field(name) for name in names}

    def items(self) -> list[Node]:
        """Return the items of the value, which must be a list."""
        if self.value is MISSING:
            self.refuse("missing")
        if not isinstance(self.value, list):
            self.refuse(f"{shortened(self.value)} is not a list")
        return [Node(self.source, f"{self.path}[{i}]", item) for i, item in enumerate(self.value)]

    def boolean(self, default: bool | None = None) -> bool:
        """Return the value, which must be true or false; the default for a missing key."""
        if self.value is MISSING and default is not None:
            return default
        self.expect(True, False)
        return cast(bool, self.value)

    def token_id(self) -> int:
        """Return the value, which must be a token's id."""
        if self.value is MISSING:
            self.refuse("missing")
        return check_id(self.value, f"{self.source}: {self.path}")

    def count(self) -> int:
        """Return the value, which must be an integer of 0 or more."""
        if self.value is MISSING:
            self.refuse("missing")
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            self.refuse(f"{shortened(self.value)} is not an integer of 0 or more")
        return min(self.value, 2**63 - 1)

    def string(self) -> str:
        """Return the value, which must be a string of Unicode text."""
        if self.value is MISSING:
            self.refuse("missing")
        if not isinstance(self.value, str):
            self.refuse(f"{shortened(self.value)} is not a string")
        self.refuse_surrogates(self.value)
        return self.value

    def refuse_surrogates(self, text: str) -> None:
        """Refuse a lone surrogate, which JSON can represent and UTF-8 cannot."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            self.refuse(f"a lone surrogate at character {error.start} of {shortened(text)}")

    def field(self, name: str) -> Node:
        """Return a field of the object; MISSING if the file does not have it."""
        path = f"{self.path}.{name}" if self.path else name
        return Node(self.source, path, self.value.get(name, MISSING))

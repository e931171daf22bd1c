"""JSON that may be hostile, read strictly: every refusal names the file and the place."""

from __future__ import annotations

import json
from typing import Any, NoReturn, cast

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.record import record
from bpe_beam.tokenizer.models import check_id

_SHOWN_PATH = 160
"""Characters of a path that a message has; the middle of a longer one is left out."""

MAX_FILE_BYTES = 1 << 30
"""No tokenizer is larger; a file that is must be something else."""

MISSING = object()
"""The value of a key that a file leaves out."""


def quote(text: str) -> str:
    """A string as JSON, its characters as they are."""
    # json.dumps finds the same function anew at each call; a large vocabulary has many tokens.
    return json.encoder.encode_basestring(text)


class _RepeatedKey(dict[str, Any]):
    """An object that holds a key twice: found while parsing, refused where its place is known."""

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
    """What `json` makes of it, several times as fast; NotImplemented where `json` may refuse it."""
    from bpe_beam import _native

    try:
        return _native.read_json(data.encode() if isinstance(data, str) else data)
    except UnicodeEncodeError:
        return NotImplemented


def parse(data: bytes | str, source: str) -> Any:
    """Parses JSON that may be hostile.

    Raises:
        UsageError: It is too large, no UTF-8, no JSON, or nested too deeply; names the place.
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
    """A value in the file and its place, so that every refusal can name it.

    Attributes:
        source: How messages name the file.
        path: The JSON path from the root.
        value: What stands there, or MISSING where nothing stands.
    """

    source: str
    path: str
    value: Any

    def refuse(self, why: str) -> NoReturn:
        """Raises UsageError with the place before the reason."""
        path = self.path
        if len(path) > _SHOWN_PATH:
            path = f"{path[: _SHOWN_PATH // 2]}...{path[-_SHOWN_PATH // 2 :]}"
        place = f"{self.source}: {path}" if path else self.source
        raise UsageError(f"{place}: {why}")

    def expect(self, *allowed: object) -> None:
        """Refuses every value but those allowed."""
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
        """The value, which must be an object without repeated keys."""
        if self.value is MISSING:
            self.refuse("missing")
        if not isinstance(self.value, dict):
            self.refuse(f"{shortened(self.value)} is not an object")
        if isinstance(self.value, _RepeatedKey):
            self.refuse(f"the key {quote(self.value.key)} stands there twice")
        return self.value

    def fields(self, *names: str) -> dict[str, Node]:
        """The object's fields; those that the file leaves out are there with MISSING."""
        value = self.object()
        for name in value:
            if name not in names:
                self.refuse(f"unknown key {shortened(name)}; the keys here are {', '.join(names)}")
        return {name: self.field(name) for name in names}

    def items(self) -> list[Node]:
        """The items of the value, which must be a list."""
        if self.value is MISSING:
            self.refuse("missing")
        if not isinstance(self.value, list):
            self.refuse(f"{shortened(self.value)} is not a list")
        return [Node(self.source, f"{self.path}[{i}]", item) for i, item in enumerate(self.value)]

    def boolean(self, default: bool | None = None) -> bool:
        """The value, which must be true or false; the default where it may be left out."""
        if self.value is MISSING and default is not None:
            return default
        self.expect(True, False)
        return cast(bool, self.value)

    def token_id(self) -> int:
        """The value, which must be a token's id."""
        if self.value is MISSING:
            self.refuse("missing")
        return check_id(self.value, f"{self.source}: {self.path}")

    def count(self) -> int:
        """The value, which must be an integer of 0 or more."""
        if self.value is MISSING:
            self.refuse("missing")
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            self.refuse(f"{shortened(self.value)} is not an integer of 0 or more")
        return min(self.value, 2**63 - 1)

    def string(self) -> str:
        """The value, which must be a string of Unicode text."""
        if self.value is MISSING:
            self.refuse("missing")
        if not isinstance(self.value, str):
            self.refuse(f"{shortened(self.value)} is not a string")
        self.refuse_surrogates(self.value)
        return self.value

    def refuse_surrogates(self, text: str) -> None:
        """Refuses half a surrogate pair, which JSON can write and UTF-8 cannot."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            self.refuse(f"a lone surrogate at character {error.start} of {shortened(text)}")

    def field(self, name: str) -> Node:
        """One field of an object; one that the file leaves out is there with MISSING."""
        path = f"{self.path}.{name}" if self.path else name
        return Node(self.source, path, self.value.get(name, MISSING))

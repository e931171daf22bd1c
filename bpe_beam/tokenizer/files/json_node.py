"""Strict reading of JSON that may be hostile: every error has the file and the JSON path.

The native reader is kept instead of `msgspec.json` for start-up: with 50,000 and 256,000 tokens,
`Tokenizer.from_file` takes 45 and 318 ms of CPU time, with msgspec 71 and 449 ms (a whole
`bpe-beam encode`: 0.19 and 0.51 s, with msgspec 0.23 and 0.70 s) and half as much memory again.
msgspec also accepts repeated keys, which are refused here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, NoReturn, TypeVar

import msgspec

from bpe_beam import _native, json_structs
from bpe_beam.errors import UsageError
from bpe_beam.messages import has_pair_at, shortened

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")

_SHOWN_PATH = 160
"""The most characters of a path in a message; the middle of a longer path is omitted."""

_MSGSPEC_WORDS = {
    "Expected": "must be",
    "Object contains unknown field": "unknown key",
    "Object missing required field": "missing key",
}
"""How messages of msgspec begin, and how ours do."""

MAX_FILE_BYTES = 1 << 30  # the most bytes of a tokenizer's file


class _RepeatedKey(dict[str, Any]):
    """An object with a repeated key: found while parsing, refused where its path is known."""

    key: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    repeated = _RepeatedKey(plain)
    ((repeated.key, _),) = Counter(key for key, _ in pairs).most_common(1)
    return repeated


def _split_path(message: str) -> tuple[str, str]:
    """Return a message of msgspec without the JSON path at its end, and that path."""
    why, mark, path = message.rpartition(" - at `$")
    if not mark:
        why, path = message, ""
    for theirs, ours in _MSGSPEC_WORDS.items():
        why = why.replace(theirs, ours, 1)
    return why, path.removesuffix("`")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def decoded(data: bytes, source: str) -> str:
    """Return the text of a file, which must be UTF-8."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{source}: byte {error.start}: not UTF-8: {error.reason}") from None


def parse(data: bytes | str, source: str) -> Any:
    """Return the value of JSON that may be hostile."""
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{source}: {len(data)} bytes; a tokenizer has at most {MAX_FILE_BYTES}")
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    value = _native.read_json(raw)
    if value is not NotImplemented:
        return value
    # The native reader returns no reason; Python's has all, and is slow.
    text = data if isinstance(data, str) else decoded(data, source)
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{source}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise UsageError(f"{source}: not a tokenizer: nested too deeply") from None
    except ValueError as error:  # NaN, or an integer of thousands of digits
        raise UsageError(f"{source}: not JSON: {error}") from None
    for node in Node(source, "", value).walk():
        node.refuse_malformed()
    return value


class Node(msgspec.Struct, frozen=True):
    """A value in a JSON file with its path; its methods raise UsageError with both."""

    source: str  # the name of the file in messages
    path: str  # from the root
    value: Any  # None for an optional key that the file does not have

    def refuse(self, why: str) -> NoReturn:
        path = f"{self.path}: " if self.path else ""
        if len(self.path) > _SHOWN_PATH:
            path = f"{self.path[: _SHOWN_PATH // 2]}...{self.path[-_SHOWN_PATH // 2 :]}: "
        raise UsageError(f"{self.source}: {path}{why}")

    def refuse_malformed(self) -> None:
        """Refuse a repeated key, and a lone surrogate, which UTF-8 cannot represent."""
        if isinstance(self.value, _RepeatedKey):
            self.refuse(f"the key {json.dumps(self.value.key, ensure_ascii=False)} is repeated")
        keys = self.value if isinstance(self.value, dict) else ()
        for text in (self.value,) if isinstance(self.value, str) else keys:
            try:
                text.encode()
            except UnicodeEncodeError as error:
                pair = has_pair_at(text, error.start)  # in a str; escapes in a file are joined
                kind = "an unjoined surrogate pair" if pair else "a lone surrogate"
                self.refuse(f"{kind} at character {error.start} of {shortened(text)}")

    def expect(self, *allowed: object) -> None:
        # The types as well: in Python, 1 == True and 0 == False.
        if not any(type(self.value) is type(one) and self.value == one for one in allowed):
            self.refuse(
                f"{shortened(self.value)} is not supported by this version of bpe-beam; must be "
                f"{' or '.join(json.dumps(one) for one in allowed)}"
            )

    def object(self) -> dict[str, Any]:
        return self._of_type(dict, "an object")

    def array(self) -> list[Any]:
        return self._of_type(list, "a list")

    def string(self) -> str:
        return self._of_type(str, "a string")

    def _of_type(self, kind: type[T], name: str) -> T:
        if not isinstance(self.value, kind):
            self.refuse(f"{shortened(self.value)} is not {name}")
        return self.value

    def fields(self, *required: str, optional: Collection[str] = ()) -> dict[str, Node]:
        """Return the object's fields, by key; an unknown key, or a missing one, is refused."""
        value = self.object()
        keys = (*required, *optional)
        for key in value:
            if key not in keys:
                self.refuse(f"unknown key {shortened(key)}; the keys here are {', '.join(keys)}")
        nodes = {key: self.field(key) for key in keys}
        for key in required:
            if key not in value:
                nodes[key].refuse("missing")
        return nodes

    def field(self, name: str) -> Node:
        """Return a field of the object; its value is None if the object does not have it."""
        path = f"{self.path}.{name}" if self.path else name
        return Node(self.source, path, self.value.get(name))

    def items(self) -> Iterator[Node]:
        """Yield the items of the value, which must be a list."""
        for number, item in enumerate(self.array()):
            yield Node(self.source, f"{self.path}[{number}]", item)

    def walk(self) -> Iterator[Node]:
        """Yield this value and all values in it, each before the values in it."""
        waiting = [iter((self,))]
        while waiting:
            node = next(waiting[-1], None)
            if node is None:
                waiting.pop()
                continue
            yield node
            if isinstance(node.value, dict):
                waiting.append(map(node.field, node.value))
            elif isinstance(node.value, list):
                waiting.append(node.items())

    def struct(self, kind: type[S], *optional: str) -> S:
        """Return the object as a struct; only `optional` keys may be missing."""
        type_key = kind.__struct_config__.tag_field
        keys = (*([type_key] if type_key else []), *kind.__struct_encode_fields__)
        self.fields(*(key for key in keys if key not in optional), optional=optional)
        return self.convert(kind)

    def convert(self, kind: type[S]) -> S:
        """Return the object as a struct; keys whose fields have defaults may be missing."""
        try:
            return json_structs.convert(self.value, kind)
        except msgspec.ValidationError as error:
            why, path = _split_path(str(error))
            Node(self.source, self.path + path, None).refuse(why)

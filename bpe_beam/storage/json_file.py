"""JSON files of artifacts: read strictly, and with a checksum that shows a change of any byte.

The checksum is the last key of the document, `sha256`: the SHA-256 of the file's bytes, in hex,
computed with 64 zeros in the position of its own 64 digits.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from bpe_beam import json_structs
from bpe_beam.errors import DataError
from bpe_beam.messages import shortened

CHECKSUM = "sha256"

VERSION = 1
"""The version of every JSON file of an artifact."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""An amount in a JSON file."""

Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
"""A SHA-256 in hex, with lower-case digits."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object, with values of any kind of JSON."""

T = TypeVar("T")

_ZEROS = "0" * 64
_LAST_KEY = re.compile(rb'"sha256":[ ]?"([0-9a-f]{64})"\s*\}\s*\Z')


class OtherVersionError(DataError):
    """A file has a version that this bpe-beam cannot read."""


def parse_json(data: bytes, source: str) -> Any:
    """Return the JSON values of a file."""
    if not data.strip():
        raise DataError(f"{source}: cannot be read as JSON: the file is empty")
    try:
        return json.loads(
            data, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise DataError(f"{source}: cannot be read as JSON: {error}") from error


def to_struct(value: object, struct: type[T], source: str) -> T:
    """Return JSON values as an object of a class, after a check of every key and value."""
    try:
        return json_structs.convert(value, struct)
    except msgspec.ValidationError as error:
        raise DataError(f"{source}: {error}") from error
    except UnicodeEncodeError as error:
        raise DataError(f"{source}: a text must be UTF-8, got a lone surrogate") from error


def json_bytes(value: Any, indent: int | None = 2) -> bytes:
    """Return JSON values as the bytes of a file: UTF-8, with the keys in their own order."""
    # A file name that is not UTF-8 has lone surrogates: each is written as its JSON escape.
    data = json.dumps(value, ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "backslashreplace"
    )
    if indent is None:
        return data
    try:
        # The same bytes as `json.dumps` indents, in a quarter of the time and of the memory.
        data = msgspec.json.format(data, indent=indent)
        return data + b"\n"
    except msgspec.DecodeError:  # lone surrogates
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        return f"{text}\n".encode("utf-8", "backslashreplace")


def with_checksum(document: object, indent: int | None = 2) -> bytes:
    """Return the bytes of a JSON file with its checksum."""
    data = json_bytes({**msgspec.to_builtins(document), CHECKSUM: _ZEROS}, indent)
    start = data.rindex(_ZEROS.encode())
    end = start + len(_ZEROS)
    view = memoryview(data)
    return b"".join((view[:start], _checksum(data, start, end), view[end:]))


def read_signed(data: bytes, source: str) -> JsonObject:
    """Return the JSON object in a file, after a check of its version and its checksum."""
    document = parse_json(data, source)
    if not isinstance(document, dict):
        raise DataError(f"{source}: must be a JSON object, got {shortened(document)}")
    version = document.get("version", VERSION)
    if type(version) is not int or version != VERSION:
        raise OtherVersionError(
            f"{source}: version must be {VERSION} for this bpe-beam, got {shortened(version)}"
        )
    if CHECKSUM not in document:
        raise DataError(f"{source}: the key {CHECKSUM!r} is missing")
    match = _LAST_KEY.match(data, data.rfind(b'"sha256"'))
    if match is None or _checksum(data, *match.span(1)) != match[1]:
        problem = "the checksum does not match: the file was changed or damaged"
        raise DataError(f"{source}: {problem} after it was written")
    del document[CHECKSUM]
    return document


def _checksum(data: bytes, start: int, end: int) -> bytes:
    """Return the checksum of a file that has it at these positions."""
    view = memoryview(data)
    digest = hashlib.sha256(view[:start])
    digest.update(_ZEROS.encode())
    digest.update(view[end:])
    return digest.hexdigest().encode()


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    fields: JsonObject = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"an object repeats the key {shortened(key)}")
        fields[key] = value
    return fields


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{shortened(text)} is beyond 64-bit numbers")
    return number

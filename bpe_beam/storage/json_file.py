"""JSON files as all artifacts have them, with a checksum that shows a change of any byte.

The checksum is the last key of the document, `sha256`: the SHA-256 of the file's bytes, in hex,
computed with 64 zeros in the position of its own 64 digits.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from bpe_beam.errors import DataError

CHECKSUM = "sha256"

_ZEROS = "0" * 64
_LAST_KEY = re.compile(rb'"sha256":[ ]?"([0-9a-f]{64})"\s*\}\s*\Z')


def json_bytes(value: Any, indent: int | None = 2) -> bytes:
    """Return JSON values as the bytes of a file: UTF-8, with the keys in their given order.

    Args:
        value: The values.
        indent: Spaces by which each level is indented; the file then ends with a newline. None
            writes a single line without a newline.

    Raises:
        ValueError: A number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    # A file name that is not UTF-8 has lone surrogates: each is written as its JSON escape.
    return (text + "\n" * (indent is not None)).encode("utf-8", "backslashreplace")


def with_checksum(document: Mapping[str, Any], indent: int | None = 2) -> bytes:
    """Return the bytes of a JSON file with its checksum.

    Args:
        document: The values, without the key `sha256`.
        indent: See `json_bytes`.

    Raises:
        ValueError: A number is not finite.
    """
    data = json_bytes({**document, CHECKSUM: _ZEROS}, indent)
    start = data.rindex(_ZEROS.encode())
    return _signed(data, start, start + len(_ZEROS))


def check_checksum(
    data: bytes,
    document: object,
    source: str,
    keys: Collection[str] | None = None,
    *,
    required: bool = False,
) -> bool:
    """Compare the checksum of a JSON file with its bytes.

    Args:
        data: The file's bytes.
        document: The JSON values in these bytes.
        source: The file's name for errors.
        keys: The other keys that the document may have; None allows any. With these, a file whose
            key `sha256` was damaged is not mistaken for one of an earlier version.
        required: Whether to refuse a file without a checksum, since its version always has one.

    Returns:
        Whether the file has a checksum; files of earlier versions of the package have none.

    Raises:
        DataError: The checksum is wrong or missing, or the file has an unknown key.
    """
    if keys is not None and isinstance(document, Mapping):
        unknown = document.keys() - {*keys, CHECKSUM}
        if unknown:
            raise DataError(f"{source}: unknown key {min(unknown)!r}")
    if not isinstance(document, Mapping) or CHECKSUM not in document:
        if required:
            raise DataError(f"{source}: the key {CHECKSUM!r} is missing")
        return False
    found = _LAST_KEY.search(data)
    if found is None or _signed(data, *found.span(1)) != data:
        raise DataError(
            f"{source}: the checksum does not match: the file was changed or damaged after it was "
            "written"
        )
    return True


def _signed(data: bytes, start: int, end: int) -> bytes:
    """Return the file with its checksum at these positions, computed with zeros there."""
    digest = hashlib.sha256(data[:start] + _ZEROS.encode() + data[end:]).hexdigest()
    return data[:start] + digest.encode() + data[end:]

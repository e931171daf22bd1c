"""JSON files that carry a checksum of themselves, so that an edit of any byte is noticed.

The checksum is the last key of the document, `sha256`: the SHA-256 of the file's bytes, in hex,
computed with 64 zeros in the place of its own 64 digits.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from bpe_beam.errors import DataError

CHECKSUM = "sha256"

_ZEROS = "0" * 64
_LAST_KEY = re.compile(rb'"sha256":[ ]?"([0-9a-f]{64})"\s*\}\s*\Z')


def with_checksum(document: Mapping[str, Any], to_bytes: Callable[[Any], bytes]) -> bytes:
    """Return the bytes of a JSON document with its checksum.

    Args:
        document: The document, without the key `sha256`.
        to_bytes: Writes JSON values as the bytes of a file; keeps the order of keys.
    """
    data = to_bytes({**document, CHECKSUM: _ZEROS})
    start = data.rindex(_ZEROS.encode())
    digest = hashlib.sha256(data).hexdigest().encode()
    return data[:start] + digest + data[start + len(digest) :]


def check_checksum(
    data: bytes,
    document: object,
    place: str,
    keys: Collection[str] | None = None,
    *,
    required: bool = False,
) -> bool:
    """Compare the checksum of a JSON file with its bytes.

    Args:
        data: The file's bytes.
        document: The JSON values that they hold.
        place: The file's name for errors.
        keys: The other keys that the document may have; None: any. So that a file whose key
            `sha256` was damaged is not taken for one of an earlier version.
        required: Refuse a file without a checksum: its version always has one.

    Returns:
        Whether the file has a checksum: those of earlier versions of the package have none.

    Raises:
        DataError: The file's checksum is another one or missing, or the file has an unknown key.
    """
    if keys is not None and isinstance(document, Mapping):
        unknown = document.keys() - {*keys, CHECKSUM}
        if unknown:
            raise DataError(f"{place}: unknown key {min(unknown)!r}")
    if not isinstance(document, Mapping) or CHECKSUM not in document:
        if required:
            raise DataError(f"{place}: the key {CHECKSUM!r} is missing")
        return False
    found = _LAST_KEY.search(data)
    if found is not None:
        start, end = found.span(1)
        digest = hashlib.sha256(data[:start] + _ZEROS.encode() + data[end:]).hexdigest()
        if digest.encode() == found[1]:
            return True
    raise DataError(
        f"{place}: the checksum does not match: the file was changed or damaged after it was "
        "written"
    )

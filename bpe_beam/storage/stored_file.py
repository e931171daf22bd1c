"""The description of a stored file that a listing or a look gives, without reading the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from bpe_beam.errors import DataError
from bpe_beam.storage.names import OBJECT_STORES, WEB, protocol_of, redact
from bpe_beam.storage.retry import EmptyAnswerError

# The first of these that a store reports is the tag. Each but the times is new with each content; a
# time is new if two versions are further apart than its unit.
_TAGS = (
    "generation",  # gs
    "ETag",  # s3
    "etag",  # az
    "lfs",  # hf: large files; the SHA-256 of the content
    "xet_hash",
    "blob_id",  # hf: the SHA-1 of the content
    "checksum",
    "md5",
    "mtime",
    "LastModified",
    "last_modified",
    "modified",
    "created",
)

LinkReport = Callable[[str, str], object]
"""A function that gets the path of a link that is not followed, and the reason."""


class StoredFile(msgspec.Struct, frozen=True, order=True):
    """A file as a listing shows it.

    Attributes:
        url: The absolute path or URL.
        size: The stored size in bytes.
        tag: A text that changes with the content: the ETag or generation of an object, the time of
            the last change (local: with the size). Empty if the store reports none.
            `Storage.expand` and `Storage.stat` give the same tag.
    """

    url: str
    size: int
    tag: str = ""


def stored_file(url: str, info: Mapping[str, Any]) -> StoredFile:
    """Return the description of a file from what fsspec reports of it."""
    size = info.get("size")
    if size is None and protocol_of(url) in OBJECT_STORES and protocol_of(url) not in WEB:
        raise EmptyAnswerError("the store does not report the file's size")
    if size is None:
        raise DataError(f"{redact(url)}: the server does not report the file's size")
    return StoredFile(url, int(size), _tag(info))


def _tag(info: Mapping[str, Any]) -> str:
    for name in _TAGS:
        value = info.get(name)
        if isinstance(value, Mapping):
            value = value.get("sha256") or value.get("oid")
        elif value is not None and getattr(value, "sha256", None):
            value = value.sha256
        # a datetime; `memory` reports one as a number too
        if value is not None and hasattr(value, "timestamp"):
            value = value.timestamp()
        if value:
            # listings of Azure have an ETag without the quotes
            return f"{name}={str(value).strip(chr(34))}"
    return ""

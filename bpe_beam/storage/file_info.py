"""What is known of a file without reading it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpe_beam.errors import DataError
from bpe_beam.storage.failures import EmptyAnswer
from bpe_beam.storage.names import OBJECT_STORES, WEB, protocol_of, redact

# The first that a store tells. Each is new with each content; a time is, where two versions are
# further apart than its unit.
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


@dataclass(frozen=True, order=True, slots=True)
class Found:
    """A file as a listing shows it.

    Attributes:
        url: Its absolute path or URL.
        size: Its size in bytes, as stored.
        tag: A text that changes when the content does: the ETag or generation of an object, the
            time of the last change (local: with the size). Empty if the store tells none. The
            same from `Storage.expand` and from `Storage.stat`.
    """

    url: str
    size: int
    tag: str = ""


def found_of(url: str, info: Mapping[str, Any]) -> Found:
    """The facts of a file out of what fsspec tells of it.

    Raises:
        DataError: A web server tells no size.
        EmptyAnswer: A store does not, which always can.
    """
    size = info.get("size")
    if size is None and protocol_of(url) in OBJECT_STORES and protocol_of(url) not in WEB:
        raise EmptyAnswer("the store does not tell the file's size")
    if size is None:
        raise DataError(f"{redact(url)}: the server does not tell the file's size")
    return Found(url, int(size), tag_of(info))


def tag_of(info: Mapping[str, Any]) -> str:
    """The tag of a file out of what fsspec tells of it."""
    for name in _TAGS:
        value = info.get(name)
        if isinstance(value, Mapping):
            value = value.get("sha256") or value.get("oid")
        elif value is not None and getattr(info.get(name), "sha256", None):
            value = info[name].sha256
        # a datetime; memory tells it as a number too
        if value is not None and hasattr(value, "timestamp"):
            value = value.timestamp()
        if value:
            # listings of Azure have an ETag without the quotes
            return f"{name}={str(value).strip(chr(34))}"
    return ""


def content_encoding(info: Mapping[str, Any]) -> str:
    """The Content-Encoding an object is stored with; empty if none is told."""
    return str(info.get("contentEncoding") or "")

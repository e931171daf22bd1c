"""What the stores' own clients are told before they are used: how long to wait for an answer, and
that an answer without its content is a fault.

A gateway or a store in trouble may answer with status 200 and nothing else. botocore reads that as
an empty listing, a file without a size or a copy that was made; here it is an error that may pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bpe_beam.storage.failures import CONNECT_SECONDS, SILENCE_SECONDS

_TAGGED = ("GetObject", "HeadObject", "PutObject", "UploadPart")
"""What each server of S3 answers with an ETag."""


def waiting(protocol: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a file system with an end to each wait, where its client has none or a long
    one. s3fs waits 5 seconds for a connection and 15 for bytes, Azure's client 20 and 60.

    Args:
        protocol: The protocol, in one spelling.
        settings: The user's settings, which count more.
    """
    if protocol != "gs":
        return dict(settings)
    import aiohttp

    limits = aiohttp.ClientTimeout(
        total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS
    )
    return {"requests_timeout": limits, **settings}


def make_strict(protocol: str, fs: Any) -> None:
    """Let a file system raise an error where a store answers without content.

    It also raises whatever keeps a folder from being listed, which fsspec takes for an empty one.

    Args:
        protocol: The protocol, in one spelling.
        fs: The file system, not connected yet, and nobody else's.
    """
    walk = fs._walk
    fs._walk = lambda *args, **given: walk(*args, **{"on_error": _raise_unless_missing, **given})
    if protocol != "s3" or not hasattr(fs, "session"):
        return  # answers in JSON or XML that are empty cannot be read: an error of its own
    from aiobotocore.session import AioSession

    if fs.session is None:
        fs.session = AioSession(**fs.kwargs)
    fs.session.register("before-parse.s3", _check_answer, unique_id="bpe-beam-empty-answers")


def _raise_unless_missing(error: Exception) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _check_answer(operation_model: Any, response_dict: Mapping[str, Any], **_: Any) -> None:
    """Called by botocore with each answer, before it is read."""
    if response_dict["status_code"] not in (200, 206):
        return
    from botocore.parsers import ResponseParserError  # which s3fs retries, parts of uploads too

    name, shape = operation_model.name, operation_model.output_shape
    headers = {header.lower() for header in response_dict["headers"]}
    if name in _TAGGED and "etag" not in headers:
        raise ResponseParserError(f"the store answers {name} without an ETag")
    if name == "HeadObject" and "content-length" not in headers:
        raise ResponseParserError("the store answers HeadObject without a size")
    if shape is None or operation_model.has_streaming_output:
        return
    located = (member.serialization.get("location") for member in shape.members.values())
    if not all(located) and not response_dict["body"]:
        raise ResponseParserError(f"the store answers {name} without content")

"""Limits of the waits of the stores' own clients, and errors for answers without content.

A gateway or an overloaded store may answer with status 200 and nothing else. botocore reads that as
an empty listing, a file without a size or a completed copy; here it is an error that may pass.
"""

from __future__ import annotations

import contextlib
import socket
import weakref
from collections.abc import Mapping
from typing import Any

from bpe_beam.storage.names import AZURE
from bpe_beam.storage.retry import CONNECT_SECONDS, SILENCE_SECONDS

AZURE_BACKOFF_SECONDS = 1
"""The first wait of Azure's client between two attempts; the others are 3 and 9 seconds longer."""
_TAGGED = ("GetObject", "HeadObject", "PutObject", "UploadPart")
"""The requests that every server of S3 answers with an ETag."""
_limited: weakref.WeakSet[Any] = weakref.WeakSet()
"""The event loops that `limit_sending` has changed."""


def with_time_limits(protocol: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a file system with limits of its waits, where its client has none.

    s3fs waits 5 seconds for a connection and 15 for bytes, Azure's client 20 and 60.

    Args:
        protocol: The protocol, in one spelling.
        settings: The user's settings, which take precedence.
    """
    if protocol in AZURE:
        return {"read_timeout": SILENCE_SECONDS, **settings}
    if protocol != "gs":
        return dict(settings)
    import aiohttp

    limits = aiohttp.ClientTimeout(
        total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS
    )
    return {"requests_timeout": limits, **settings}


def limit_sending(loop: Any) -> None:
    """Close connections of an event loop whose other side accepts no bytes for SILENCE_SECONDS.

    The clients limit how long they wait for an answer. That wait begins when the request is sent,
    and a server that stops reading in the middle of a request blocks the client for ever. Only the
    operating system knows whether bytes are still accepted; Linux has a setting for this, macOS has
    none.

    Args:
        loop: The event loop of a file system.
    """
    if loop in _limited or not hasattr(socket, "TCP_USER_TIMEOUT"):
        return
    create_connection = loop.create_connection

    async def create_limited(*args: Any, **settings: Any) -> Any:
        transport, protocol = await create_connection(*args, **settings)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            with contextlib.suppress(OSError):  # not TCP
                limit = int(SILENCE_SECONDS * 1000)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)
        return transport, protocol

    with contextlib.suppress(AttributeError):  # a loop of another package may be read-only
        loop.create_connection = create_limited
    _limited.add(loop)


def limit_azure_requests(fs: Any) -> None:
    """Limit the waits of Azure's client for answers to all requests, and between its attempts.

    The file system itself uses its option `read_timeout` only for requests that read content. The
    client waits 15 seconds and more between attempts.

    Args:
        fs: The file system, made by `with_time_limits`.
    """
    client = getattr(fs, "service_client", None)
    if client is not None:  # not a file system of another package
        limit = fs._timeout_kwargs.get("read_timeout", SILENCE_SECONDS)
        client._pipeline._transport.connection_config.read_timeout = limit
        client._config.retry_policy.initial_backoff = AZURE_BACKOFF_SECONDS


def limit_hub_requests() -> None:
    """Give each request to Hugging Face's hub a time limit; by default most have none."""
    from huggingface_hub import get_session

    hooks = get_session().event_hooks["request"]
    if _limit_request not in hooks:
        hooks.append(_limit_request)


def _limit_request(request: Any) -> None:
    """Called by Hugging Face's client with each request, before it is sent."""
    limits = request.extensions.setdefault("timeout", {})
    for wait in ("connect", "pool", "read", "write"):
        if limits.get(wait) is None:
            limits[wait] = CONNECT_SECONDS if wait == "connect" else SILENCE_SECONDS


def make_strict(protocol: str, fs: Any) -> None:
    """Make a file system raise an error for an answer without content.

    It also raises errors of listing a folder, for which fsspec returns an empty listing.

    Args:
        protocol: The protocol, in one spelling.
        fs: The file system, not connected yet, and not shared.
    """
    walk = fs._walk
    fs._walk = lambda *args, **settings: walk(
        *args, **{"on_error": _raise_unless_missing, **settings}
    )
    if protocol != "s3" or not hasattr(fs, "session"):
        return  # empty answers in JSON or XML raise an error of their own
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

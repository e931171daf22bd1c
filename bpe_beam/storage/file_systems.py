"""fsspec's file systems by protocol, with the user's options; shared by threads if they allow.

The waits of the stores' own clients are limited here. An answer without content, as a gateway or an
overloaded store may give with status 200, is an error that may pass: botocore reads it as an empty
listing, a file without a size or a completed copy.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import socket
import threading
import weakref
from collections.abc import Mapping
from typing import Any, cast

from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.storage.masking import know_url
from bpe_beam.storage.names import (
    AZURE,
    NAMED_BY_KEYS,
    WEB,
    protocol_of,
    redact,
    split_key,
    store_path,
)
from bpe_beam.storage.object_listing import open_bucket
from bpe_beam.storage.retry import CONNECT_SECONDS, REQUESTS_AT_ONCE, SILENCE_SECONDS

_EXTRAS = {"s3": "s3", "gs": "gcs", "hf": "hf"}
_EXTRAS |= dict.fromkeys(AZURE, "azure") | dict.fromkeys(WEB, "http")
# The options that the stores' classes pass on to fsspec.
_GENERAL = {"use_listings_cache", "listings_expiry_time", "max_paths", "skip_instance_cache"}
_CUTOFF = 0.5
"""The likeness of near names: a protocol of two letters with one wrong is half alike."""

_AZURE_BACKOFF_SECONDS = 1
"""The first wait of Azure's client between two attempts; the others are 3 and 9 seconds longer."""
_TAGGED = ("GetObject", "HeadObject", "PutObject", "UploadPart")
"""The requests that every server of S3 answers with an ETag."""
_limited: weakref.WeakSet[Any] = weakref.WeakSet()
"""The event loops that `_limit_sending` has changed."""

_connected: dict[tuple[int, str, str], Any] = {}
_connecting = threading.Lock()


def check_protocols(options: Mapping[str, Any]) -> None:
    """Refuse options for a protocol that does not exist, by a UsageError."""
    known = _protocols()
    for protocol in options:
        if protocol_of(f"{protocol}://") not in known:
            near = did_you_mean(protocol, known, _CUTOFF)
            raise UsageError(f"storage options: the protocol {protocol!r} is unknown{near}")


def _protocols() -> set[str]:
    import fsspec  # slow to import, and not needed for local files

    return {*fsspec.available_protocols(), *_EXTRAS}


def connect(
    options: Mapping[str, Mapping[str, Any]], url: str, *, known: bool = False
) -> tuple[Any, str]:
    """Return the file system of a URL, and its own path for the URL.

    Cached listings are dropped, since other processes write to the same store.
    """
    know_url(url)
    protocol = protocol_of(url)
    kind = _kind_of(protocol, url)
    names = kind.protocol if isinstance(kind.protocol, tuple | list) else (kind.protocol,)
    settings: dict[str, object] = {}
    for name in (*names, protocol):  # the URL's own spelling takes precedence
        settings.update(options.get(name, {}))
    _check_names(protocol, kind, settings)
    in_url = dict(kind._get_kwargs_from_urls(url))
    in_url.pop("version_aware", None)  # "part#1" is a name, not a version
    settings = {**in_url, **settings}
    if protocol == "gs" and (settings.get("endpoint_url") or os.getenv("STORAGE_EMULATOR_HOST")):
        # the default class first asks Google's gRPC service for the kind of each bucket; other
        # servers never answer, and it waits minutes
        from gcsfs.core import GCSFileSystem

        kind = GCSFileSystem
    fs = _instance(protocol, kind, settings)
    if not (known and protocol == "hf"):
        fs.invalidate_cache()
    if protocol == "memory":  # treats "::" as a chain of file systems
        return fs, "/" + url.partition("://")[2].strip("/")
    return fs, store_path(url) if protocol in NAMED_BY_KEYS else kind._strip_protocol(url)


def _kind_of(protocol: str, url: str) -> Any:
    import fsspec

    try:
        return fsspec.get_filesystem_class(protocol)
    except ValueError:
        near = did_you_mean(protocol, _protocols(), _CUTOFF)
        raise UsageError(f"{redact(url)}: the protocol {protocol!r} is unknown{near}") from None
    except ImportError as error:
        extra = _EXTRAS.get(protocol)
        if extra is None:
            raise UsageError(f"{redact(url)}: {error}") from None
        raise UsageError(
            f"{redact(url)}: {protocol}:// needs packages that are not installed: "
            f"pip install 'bpe-beam[{extra}]'"
        ) from None


def _check_names(protocol: str, kind: Any, settings: Mapping[str, Any]) -> None:
    """Refuse options that the clouds' classes would accept and ignore."""
    if protocol not in _EXTRAS or protocol in WEB:
        return
    known = _option_names(protocol, kind)
    for name in settings:
        # adlfs passes unknown options on to Azure's credentials, which have many more
        passed_on = protocol in AZURE and not did_you_mean(name, known, 0.8)
        if name not in known and not passed_on:
            near = did_you_mean(name, known, _CUTOFF)
            raise UsageError(f"storage options: {name!r} is not an option of {protocol}{near}")


@functools.cache  # each request asks
def _option_names(protocol: str, kind: Any) -> frozenset[str]:
    """Return the options that a cloud's class takes."""
    known = set(_GENERAL)
    if protocol == "s3":
        known.add("profile")  # of the session that s3fs makes
    for each in kind.__mro__:
        if "__init__" in vars(each) and each.__module__.partition(".")[0] != "fsspec":
            known |= set(inspect.signature(each.__init__).parameters)
    return frozenset(known - {"self", "kwargs", "storage_options", "args"})


def _instance(protocol: str, kind: Any, settings: Mapping[str, Any]) -> Any:
    if protocol == "hf":
        _limit_hub_requests()
    if not kind.async_impl:  # may belong to one thread
        return kind(**settings)
    key = (os.getpid(), f"{kind.__module__}.{kind.__qualname__}", repr(sorted(settings.items())))
    with _connecting:
        fs = _connected.get(key)
        if fs is None:
            settings = _with_time_limits(protocol, settings)
            fs = kind(**{"use_listings_cache": False, **settings, "skip_instance_cache": True})
            _make_strict(protocol, fs)
            _keep_keys(protocol, fs)
            if protocol in AZURE:
                _limit_azure_requests(fs)
            _limit_sending(fs.loop)
            _connected[key] = fs
    return fs


def _with_time_limits(protocol: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the user's settings of a file system, with limits where its client has none.

    s3fs waits 5 seconds for a connection and 15 for bytes, Azure's client 20 and 60. s3fs has ten
    connections.
    """
    if protocol == "s3":
        from fsspec.config import conf  # whose `config_kwargs` an option would replace

        config: dict[str, Any] = {"max_pool_connections": REQUESTS_AT_ONCE}
        for each in (conf.get("s3", {}), settings):
            config |= each.get("config_kwargs") or {}
        return {**settings, "config_kwargs": config}
    if protocol in AZURE:
        return {"read_timeout": SILENCE_SECONDS, **settings}
    return {"requests_timeout": http_limits(), **settings} if protocol == "gs" else settings


def http_limits() -> Any:
    """Return this package's limits for the waits of aiohttp."""
    import aiohttp

    return aiohttp.ClientTimeout(
        total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS
    )


def _limit_sending(loop: Any) -> None:
    """Close connections of an event loop whose other side accepts no bytes for SILENCE_SECONDS.

    The clients limit their waits only after a request is sent: a server that stops reading in the
    middle of one would block them for ever. Linux has a setting for this, macOS has none.
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


def _limit_azure_requests(fs: Any) -> None:
    """Limit the waits of Azure's client for all answers, and between its attempts.

    The file system itself limits only requests that read content; the client waits 15 seconds and
    more between attempts.
    """
    client = getattr(fs, "service_client", None)
    if client is not None:  # not a file system of another package
        limit = fs._timeout_kwargs.get("read_timeout", SILENCE_SECONDS)
        client._pipeline._transport.connection_config.read_timeout = limit
        client._config.retry_policy.initial_backoff = _AZURE_BACKOFF_SECONDS


def _limit_hub_requests() -> None:
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


def _make_strict(protocol: str, fs: Any) -> None:
    """Make a file system raise errors for answers without content, and errors of listings.

    fsspec returns an empty listing after an error.
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


def _keep_keys(protocol: str, fs: Any) -> None:
    """Make a file system take the keys of objects as they are.

    The paths that `connect` returns have no protocol. Of these s3fs would take slashes from the
    end, adlfs line breaks too, and both a query that names a version, though they read no versions
    unless `version_aware` is among their options.
    """
    if protocol not in NAMED_BY_KEYS or not hasattr(fs, "version_aware"):
        return  # or a file system of another package
    fs._strip_protocol = lambda path: path
    if protocol == "s3" and not fs.version_aware:
        fs.split_path = lambda path: (*fs._find_bucket_key(path), None)
    if protocol in AZURE and not fs.version_aware:
        fs.split_path = lambda path, *_, **__: (*split_key(path), None)


def file_info(protocol: str, fs: Any, path: str) -> Mapping[str, Any]:
    """Return what fsspec reports of a file or folder."""
    bucket, key = split_key(path)
    if protocol != "gs" or not key:
        return cast(Mapping[str, Any], fs.info(path))
    from fsspec.asyn import sync

    # gcsfs's `info` takes the key `name/` for `name`
    try:
        return cast(Mapping[str, Any], sync(fs.loop, fs._get_object, path))
    except FileNotFoundError:
        objects = open_bucket(fs, protocol, bucket)
        if key.endswith("/") or objects is None or not objects.is_prefix(f"{key}/"):
            raise
        return {"name": path, "size": 0, "type": "directory"}


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

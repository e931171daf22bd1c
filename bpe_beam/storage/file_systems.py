"""fsspec's file systems by protocol, with the user's options; shared by threads if they allow."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any, cast

from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.storage.client_limits import (
    limit_azure_requests,
    limit_hub_requests,
    limit_sending,
    make_strict,
    with_time_limits,
)
from bpe_beam.storage.names import AZURE, WEB, protocol_of
from bpe_beam.storage.redaction import redact

_EXTRAS = {"s3": "s3", "gs": "gcs", "hf": "hf"}
_EXTRAS |= dict.fromkeys(AZURE, "azure") | dict.fromkeys(WEB, "http")
# The options that the stores' classes pass on to fsspec.
_GENERAL = {"use_listings_cache", "listings_expiry_time", "max_paths", "skip_instance_cache"}
_SHORTEST_SECRET = 5
"""Characters of the shortest option that errors hide; "auto" or "true" would leave holes."""
_CUTOFF = 0.5
"""The likeness of near names: a protocol of two letters with one wrong is half alike."""

_connected: dict[tuple[int, str, str], Any] = {}
_connecting = threading.Lock()


def check_protocols(options: Mapping[str, Any]) -> None:
    """Refuse options for a protocol that does not exist.

    Raises:
        UsageError: A protocol is unknown; names the nearest known one.
    """
    import fsspec  # slow to import, and local files do without it

    known = {*fsspec.available_protocols(), *_EXTRAS}
    for protocol in options:
        if protocol_of(f"{protocol}://") not in known:
            raise UsageError(
                f"storage options: the protocol {protocol!r} is unknown"
                + did_you_mean(protocol, known, _CUTOFF)
            )


def secrets_of(options: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Return all texts in storage options: some are secret, and nothing shows which."""

    def texts(value: object) -> Iterable[str]:
        if isinstance(value, str):
            if len(value) >= _SHORTEST_SECRET:
                yield value
        elif isinstance(value, Mapping):
            for each in value.values():
                yield from texts(each)
        elif isinstance(value, list | tuple):
            for each in value:
                yield from texts(each)

    found = set(texts(options))
    return frozenset(text for text in found if "://" not in text or redact(text) != text)


def connect(
    options: Mapping[str, Mapping[str, Any]], url: str, *, known: bool = False
) -> tuple[Any, str]:
    """Return the file system of a URL, and its own path for the URL.

    Cached listings are dropped, since other processes write to the same store.

    Args:
        options: The user's options by protocol.
        url: A URL.
        known: Whether a cached listing may serve. Hugging Face's hub needs two requests for a new
            one, and limits their number.

    Raises:
        UsageError: The protocol or one of its options is unknown, or its package is missing.
    """
    protocol = protocol_of(url)
    kind = _kind_of(protocol, url)
    names = kind.protocol if isinstance(kind.protocol, tuple | list) else (kind.protocol,)
    settings: dict[str, Any] = {}
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
    return fs, _path(kind, protocol, url)


def _kind_of(protocol: str, url: str) -> Any:
    import fsspec

    try:
        return fsspec.get_filesystem_class(protocol)
    except ValueError:
        near = did_you_mean(protocol, {"file", *_EXTRAS, *fsspec.available_protocols()}, _CUTOFF)
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
    known = set(_GENERAL)
    if protocol == "s3":
        known.add("profile")  # of the session that s3fs makes
    for each in kind.__mro__:
        if "__init__" in vars(each) and each.__module__.partition(".")[0] != "fsspec":
            known |= set(inspect.signature(each.__init__).parameters)
    known -= {"self", "kwargs", "storage_options", "args"}
    for name in settings:
        # adlfs passes unknown options on to Azure's credentials, which have many more
        passed_on = protocol in AZURE and not did_you_mean(name, known, 0.8)
        if name not in known and not passed_on:
            raise UsageError(
                f"storage options: {name!r} is not an option of {protocol}"
                + did_you_mean(name, known, _CUTOFF)
            )


def _instance(protocol: str, kind: Any, settings: Mapping[str, Any]) -> Any:
    if protocol == "hf":
        limit_hub_requests()
    if not kind.async_impl:  # may belong to one thread
        return kind(**settings)
    key = (os.getpid(), f"{kind.__module__}.{kind.__qualname__}", repr(sorted(settings.items())))
    with _connecting:
        fs = _connected.get(key)
        if fs is None:
            settings = with_time_limits(protocol, settings)
            fs = kind(**{"use_listings_cache": False, **settings, "skip_instance_cache": True})
            make_strict(protocol, fs)
            if protocol in AZURE:
                limit_azure_requests(fs)
            limit_sending(fs.loop)
            _connected[key] = fs
    return fs


def _path(kind: Any, protocol: str, url: str) -> str:
    if protocol == "memory":  # treats "::" as a chain of file systems
        return "/" + url.partition("://")[2].strip("/")
    return cast(str, kind._strip_protocol(url))

"""fsspec's file systems: by protocol, with the user's options, one for all threads where it is
made for that."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any, cast

from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.storage.names import WEB, protocol_of, redact
from bpe_beam.storage.timeouts import limit_hub_requests, limit_sending, make_strict, waiting

_EXTRAS = {"s3": "s3", "gs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure", "hf": "hf"}
_EXTRAS |= dict.fromkeys(WEB, "http")
# What the stores' classes pass on to fsspec's own.
_GENERAL = {"use_listings_cache", "listings_expiry_time", "max_paths", "skip_instance_cache"}
_SHORTEST_SECRET = 4
_CUTOFF = 0.5
"""Of near names: protocols are short, so that one other letter makes half of the likeness."""

_connected: dict[tuple[int, str, str], Any] = {}
_connecting = threading.Lock()


def check_protocols(options: Mapping[str, Any]) -> None:
    """Refuses options for a protocol that there is none of.

    Raises:
        UsageError: With what may be meant.
    """
    if not options:
        return
    import fsspec  # only where it is needed: local work starts faster without it

    known = {*fsspec.available_protocols(), *_EXTRAS}
    for protocol in options:
        if protocol_of(f"{protocol}://") not in known:
            raise UsageError(
                f"storage options: the protocol {protocol!r} is unknown"
                + did_you_mean(protocol, known, _CUTOFF)
            )


def secrets_of(options: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """All texts in storage options: some are secret, and nobody says which."""

    def texts(value: object) -> Iterable[str]:
        if isinstance(value, str):
            # words of one or two letters, "auto" or "true" would leave holes in any message
            if len(value) > _SHORTEST_SECRET:
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
    """The file system of a URL, and what it calls the URL. Listings are not kept: others write to
    the same store.

    Args:
        options: The user's, by protocol.
        url: A URL.
        known: The file was listed before, and an old listing will do: Hugging Face's hub wants two
            requests for a new one, and counts them.

    Raises:
        UsageError: The protocol is unknown, its package is missing, or one of its options is.
    """
    protocol = protocol_of(url)
    kind = _kind_of(protocol, url)
    names = kind.protocol if isinstance(kind.protocol, tuple | list) else (kind.protocol,)
    settings: dict[str, Any] = {}
    for name in (*names, protocol):  # the URL's own spelling counts most
        settings.update(options.get(name, {}))
    _check_names(protocol, kind, settings)
    told = dict(kind._get_kwargs_from_urls(url))
    told.pop("version_aware", None)  # for "part#1", which is a name and no version
    settings = {**told, **settings}
    if protocol == "gs" and (settings.get("endpoint_url") or os.getenv("STORAGE_EMULATOR_HOST")):
        # the default class asks Google's gRPC service for the kind of each bucket first, which no
        # other server answers, and waits minutes
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
    """Refuses options that the clouds' classes would take and ignore."""
    if protocol not in _EXTRAS or protocol in WEB:
        return
    known = set(_GENERAL)
    if protocol == "s3":
        known.add("profile")  # for the session that s3fs makes
    for each in kind.__mro__:
        if "__init__" in vars(each) and each.__module__.partition(".")[0] != "fsspec":
            known |= set(inspect.signature(each.__init__).parameters)
    known -= {"self", "kwargs", "storage_options", "args"}
    for name in settings:
        # adlfs hands what it does not know on to Azure's credentials, which know many more
        handed_on = _EXTRAS[protocol] == "azure" and not did_you_mean(name, known, 0.8)
        if name not in known and not handed_on:
            raise UsageError(
                f"storage options: {name!r} is not an option of {protocol}"
                + did_you_mean(name, known, _CUTOFF)
            )


def _instance(protocol: str, kind: Any, settings: Mapping[str, Any]) -> Any:
    if protocol == "hf":
        limit_hub_requests()
    if not kind.async_impl:  # may be bound to its thread
        return kind(**settings)
    key = (os.getpid(), f"{kind.__module__}.{kind.__qualname__}", repr(sorted(settings.items())))
    with _connecting:
        fs = _connected.get(key)
        if fs is None:
            settings = waiting(protocol, settings)
            fs = kind(**{"use_listings_cache": False, **settings, "skip_instance_cache": True})
            make_strict(protocol, fs)
            limit_sending(fs.loop)
            _connected[key] = fs
    return fs


def _path(kind: Any, protocol: str, url: str) -> str:
    if protocol == "memory":  # takes "::" for a chain of file systems
        return "/" + url.partition("://")[2].strip("/")
    return cast(str, kind._strip_protocol(url))

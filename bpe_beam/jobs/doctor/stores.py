"""Checks of storage: the packages of each store, signs of credentials, and given paths.

Requests go only to the stores of these paths.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bpe_beam.jobs.doctor.checks import PACKAGE, Check, unmet, version_of
from bpe_beam.messages import list_few
from bpe_beam.storage import Storage, redact

_STORES = {
    "s3": ("s3://", ("s3",), ("s3fs",)),
    "gcs": ("gs://", ("gs", "gcs"), ("gcsfs",)),
    "azure": ("az://", ("az", "abfs", "abfss"), ("adlfs",)),
    "hf": ("hf://", ("hf",), ("huggingface_hub",)),
    "http": ("https://", ("https", "http"), ("aiohttp",)),
}
"""By extra: how URLs begin, the protocols of storage options, and packages to name."""

_VARIABLES = {
    "s3": (
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ),
    "gcs": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "azure": (
        "AZURE_STORAGE_CONNECTION_STRING",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_CLIENT_ID",
    ),
    "hf": ("HF_TOKEN",),
}
_FILES = {
    "s3": ("~/.aws/credentials", "~/.aws/config"),
    "gcs": ("~/.config/gcloud/application_default_credentials.json",),
    "azure": ("~/.azure/msal_token_cache.json",),
    "hf": ("~/.cache/huggingface/token",),
}

_TOOLS = frozenset({"dev", "docs", "servers", "test"})
"""Extras for work on the package itself."""

_IN_RUNNERS = frozenset({"dataflow"})


def checks(options: Mapping[str, Any]) -> Iterator[tuple[str, str, Callable[[], Check]]]:
    """Yield the area, the name and the function of each check, given the storage options."""
    for extra, (start, _, _) in _STORES.items():
        yield "storage", start, lambda extra=extra: _store(extra, options)  # type: ignore[misc]
    if version_of(PACKAGE) is None:
        return
    extras = metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    for extra in sorted({*extras} - _TOOLS - _IN_RUNNERS - _STORES.keys() - {"cloud"}):
        yield "extras", extra, lambda extra=extra: _extra(extra)  # type: ignore[misc]


def checks_of_paths(
    paths: Sequence[str], options: Mapping[str, Any]
) -> Iterator[tuple[str, str, Callable[[], Check]]]:
    """Yield the area, the name and the function of a check of each path or URL."""
    for path in paths:
        yield "paths", redact(path), lambda path=path: _path(path, options)  # type: ignore[misc]


def credentials_of(extra: str) -> list[str]:
    """Return the names of variables and files that usually have a store's credentials."""
    variables = [name for name in _VARIABLES.get(extra, ()) if os.environ.get(name)]
    return variables + [name for name in _FILES.get(extra, ()) if Path(name).expanduser().is_file()]


def _store(extra: str, options: Mapping[str, Any]) -> Check:
    start, protocols, packages = _STORES[extra]
    install = f"pip install '{PACKAGE}[{extra}]'"
    lacking = [name for name in packages if version_of(name) is None]
    if version_of(PACKAGE) is not None:
        lacking = unmet(PACKAGE, extra)
    if lacking:
        return Check("storage", start, "missing", f"lacks {list_few(lacking)}", install)
    versions = ", ".join(f"{name} {version_of(name)}" for name in packages)
    signs = credentials_of(extra)
    if any(name in options for name in protocols):
        signs.append("--storage-options")
    if signs:
        return Check("storage", start, "works", f"{versions}; credentials: {', '.join(signs)}")
    if extra not in _VARIABLES:
        return Check("storage", start, "works", versions)
    remedy = f"for private data set {_VARIABLES[extra][0]}, or give --storage-options"
    return Check("storage", start, "works", f"{versions}; no credentials", remedy)


def _extra(extra: str) -> Check:
    lacking = unmet(PACKAGE, extra)
    if lacking:
        install = f"pip install '{PACKAGE}[{extra}]'"
        return Check("extras", extra, "missing", f"lacks {list_few(lacking)}", install)
    return Check("extras", extra, "works", "its packages are installed")


def _path(path: str, options: Mapping[str, Any]) -> Check:
    """Check that a path exists; errors of storage have the words of jobs, without secrets."""
    storage, name = Storage(options), redact(path)
    if storage.is_folder(path):
        number = len(list(storage.list_names(path)))
        return Check("paths", name, "works", f"a folder, {number:,} names in it")
    if storage.exists(path):
        return Check("paths", name, "works", "a file")
    return Check("paths", name, "fails", "no such file or folder", "check the name")

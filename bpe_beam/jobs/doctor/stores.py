"""Checks of storage: the packages of each store, signs of credentials, and given paths.

Requests go only to the stores of these paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from bpe_beam.jobs.doctor.checks import PACKAGE, Outcome, PlannedCheck, unmet, version_of
from bpe_beam.messages import list_few
from bpe_beam.storage import Storage

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

_UNCHECKED_EXTRAS = frozenset({"dev", "docs", "servers", "test", "cloud", "dataflow"})
"""Extras for work on the package itself, of several stores, and of a runner."""


def checks(options: Mapping[str, Any]) -> Iterator[PlannedCheck]:
    """Yield a check of each store, then of each other extra."""
    for extra, (start, _, _) in _STORES.items():
        yield "storage", start, partial(_store, extra, options)
    if version_of(PACKAGE) is None:
        return
    extras = metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    for extra in sorted({*extras} - _UNCHECKED_EXTRAS - _STORES.keys()):
        yield "extras", extra, partial(_extra, extra)


def credentials_of(extra: str) -> list[str]:
    """Return the names of variables and files that usually have a store's credentials."""
    variables = [name for name in _VARIABLES.get(extra, ()) if os.environ.get(name)]
    return variables + [name for name in _FILES.get(extra, ()) if Path(name).expanduser().is_file()]


def _store(extra: str, options: Mapping[str, Any]) -> Outcome:
    _, protocols, packages = _STORES[extra]
    lacking = [name for name in packages if version_of(name) is None]
    if version_of(PACKAGE) is not None:
        lacking = unmet(PACKAGE, extra)
    if lacking:
        return "missing", f"lacks {list_few(lacking)}", f"pip install '{PACKAGE}[{extra}]'"
    versions = ", ".join(f"{name} {version_of(name)}" for name in packages)
    signs = credentials_of(extra)
    if any(name in options for name in protocols):
        signs.append("--storage-options")
    if signs:
        return "works", f"{versions}; credentials: {', '.join(signs)}"
    if extra not in _VARIABLES:
        return "works", versions
    remedy = f"for private data set {_VARIABLES[extra][0]}, or give --storage-options"
    return "works", f"{versions}; no credentials", remedy


def _extra(extra: str) -> Outcome:
    if lacking := unmet(PACKAGE, extra):
        return "missing", f"lacks {list_few(lacking)}", f"pip install '{PACKAGE}[{extra}]'"
    return "works", "its packages are installed"


def check_path(path: str, options: Mapping[str, Any]) -> Outcome:
    """Check that a path exists; errors are the ones that jobs show, without secrets."""
    storage = Storage(options)
    if storage.is_folder(path):
        number = len(list(storage.list_names(path)))
        return "works", f"a folder, {number:,} names in it"
    if storage.exists(path):
        return "works", "a file"
    return "fails", "no such file or folder", "check the name"

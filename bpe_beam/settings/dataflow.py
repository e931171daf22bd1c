"""Checks of settings for Dataflow: paths that its workers cannot reach, and secrets.

Dataflow stores the description of a job, with all storage options, and shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bpe_beam.errors import UsageError
from bpe_beam.storage.names import is_local, redact

_SECRET = re.compile(
    r"key|secret|token|passw|credential|sas|connection_string|auth|cookie|header", re.IGNORECASE
)
_NO_SECRETS = ("anon", "cloud", "google_default")
"""Values of gcsfs's option `token` that are not secrets."""


def is_dataflow(runner: str | None) -> bool:
    """Return whether a runner is Dataflow, under any name that Beam accepts."""
    name = (runner or "").lower().rpartition(".")[2]
    return name.removesuffix("runner") == "dataflow"


def require_reachable(runner: str | None, **urls: Iterable[str]) -> None:
    """Refuse paths that Dataflow's workers cannot reach.

    These are paths of this machine, and URLs with a password or a query. The driver reads `@FILE`.
    """
    if not is_dataflow(runner):
        return
    for name, group in urls.items():
        for url in group:
            if url.startswith("@"):
                continue
            if is_local(url):
                raise UsageError(
                    f"must be in a bucket for Dataflow, got {url}, a path of this machine",
                    (name,),
                    "copy it to gs://BUCKET/...",
                )
            if redact(url) != url:
                raise UsageError(
                    f"must have no password and no query for Dataflow, which stores the job's "
                    f"description, got {redact(url)}",
                    (name,),
                    "give the workers' service account access",
                )


def require_no_secrets(runner: str | None, options: Mapping[str, Any]) -> None:
    """Refuse storage options that look like secrets, since the job's description contains them."""
    if not is_dataflow(runner):
        return
    for name in _secrets("", options):
        raise UsageError(
            f"must have no secrets for Dataflow, which stores the job's description and shows it, "
            f"got {name}",
            ("storage_options",),
            "give the workers' service account access, or set the cloud's usual variables in the "
            "worker image",
        )


def _secrets(path: str, value: object, suspect: bool = False) -> Iterator[str]:
    """Yield the full names of the options that look like secrets."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            inner = f"{path}.{name}".lstrip(".")
            # The first name, the protocol, is never a secret.
            yield from _secrets(inner, each, suspect or bool(path and _SECRET.search(name)))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _secrets(path, each, suspect)
    elif isinstance(value, str) and (suspect or redact(value) != value):
        yield from () if value in _NO_SECRETS else (path,)

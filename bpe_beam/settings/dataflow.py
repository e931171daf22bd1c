"""Checks of settings for Dataflow: paths that its workers cannot reach, and secrets.

Dataflow stores the description of a job, with all storage options, and shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bpe_beam.errors import UsageError
from bpe_beam.storage.masking import named_values
from bpe_beam.storage.names import is_local, redact


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
    for name in (name for name, _, secret in named_values(options) if secret):
        raise UsageError(
            f"must have no secrets for Dataflow, which stores the job's description and shows it, "
            f"got {name}",
            ("storage_options",),
            "give the workers' service account access, or set the cloud's usual variables in the "
            "worker image",
        )

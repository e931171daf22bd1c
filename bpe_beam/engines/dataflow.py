"""What cannot work on Dataflow, or should not leave this machine for it; said before a job starts.

Light on purpose: no Beam.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bpe_beam.errors import UsageError
from bpe_beam.storage.names import is_local, redact

FLAGS = (
    "--no_save_main_session",
    "--experiments=disable_logging_submission_environment",
)
"""For every job there, since Beam would send along what nobody asks for: all that is defined in the
program that was started, and a list of this environment's packages, with the paths and
repositories that they were installed from."""

_SECRET = re.compile(
    r"key|secret|token|passw|credential|sas|connection_string|auth|cookie|header", re.IGNORECASE
)
_NO_SECRETS = ("anon", "cloud", "google_default")
"""What gcsfs takes for a token and is none."""


def is_dataflow(runner: str | None) -> bool:
    """Whether a runner is Dataflow, by any name that Beam takes."""
    name = (runner or "").lower().rpartition(".")[2]
    return name.removesuffix("runner") == "dataflow"


def require_reachable(runner: str | None, **places: Iterable[str]) -> None:
    """Refuses paths that Dataflow's workers cannot reach.

    Args:
        runner: The runner; any other has nothing to say.
        places: Paths and URLs by the option that names them. `@FILE` is read here, and passes.

    Raises:
        UsageError: A path of this machine, or a URL with a password in it.
    """
    if not is_dataflow(runner):
        return
    for option, urls in places.items():
        for url in urls:
            if url.startswith("@"):
                continue
            if is_local(url):
                raise UsageError(
                    f"{option} {url} is a path of this machine, which Dataflow's workers do not "
                    "see: copy it to a bucket and name it as gs://BUCKET/..."
                )
            if redact(url) != url:
                raise UsageError(
                    f"{option} {redact(url)} comes with a password or a query, which would stand "
                    "in the job's description, and Dataflow keeps that: let the workers' service "
                    "account have access"
                )


def require_no_secrets(runner: str | None, options: Mapping[str, Any]) -> None:
    """Refuses storage options that look like secrets: they travel in the job's description.

    Raises:
        UsageError: Naming the option, not its value.
    """
    if not is_dataflow(runner):
        return
    for name in _secrets("", options):
        raise UsageError(
            f"storage_options: {name} looks like a secret. Options travel to Dataflow's workers in "
            "the job's description, which Dataflow keeps and shows to whoever may see the job: let "
            "the workers' service account have access, or set the cloud's usual variables in the "
            "worker image"
        )


def _secrets(path: str, value: object, suspect: bool = False) -> Iterator[str]:
    """The options that look like secrets, by their full names."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            inner = f"{path}.{name}".lstrip(".")
            # Not the protocol, the first of the names.
            yield from _secrets(inner, each, suspect or bool(path and _SECRET.search(name)))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _secrets(path, each, suspect)
    elif isinstance(value, str) and (suspect or redact(value) != value):
        yield from () if value in _NO_SECRETS else (path,)

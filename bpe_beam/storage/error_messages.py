"""Errors of storage as users read them: each names the file, and hides what may be secret."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Collection, Iterator

from bpe_beam.errors import DataError, NotFoundError, UsageError
from bpe_beam.storage.credentials import remedy_of
from bpe_beam.storage.masking import know_url, masked_cause, masked_message
from bpe_beam.storage.names import is_local, protocol_of, redact
from bpe_beam.storage.retry import CONNECTING, causes_of, is_unreadable

_SILENT_TYPES = {
    *("ConnectTimeout", "EndpointConnectionError", "ReadTimeout"),
    *("TimeoutError", "TimeoutException"),
}
"""By name, as in `retry.py`."""
_MAX_MESSAGE = 500
"""The length of a library's message, in characters, beyond which it is shortened."""


@contextlib.contextmanager
def named_errors(verb: str, url: str, secrets: Collection[str] = ()) -> Iterator[None]:
    """Return a context that turns errors of storage into errors "cannot VERB URL: REASON"."""
    try:
        yield
    except (UsageError, DataError):
        raise
    except OSError as error:
        know_url(url)  # it may have been forgotten since it was opened
        # for a missing file the stores only repeat the path
        missing = "No such file or directory" if isinstance(error, FileNotFoundError) else ""
        if missing and verb == "write" and not is_local(url):
            missing = "there is no such bucket or folder to write to"
        # the clouds' libraries put a sentence where the number belongs, or after it
        sentence = missing or ("" if is_local(url) else str(error.args[-1] if error.args else ""))
        why = sentence or error.strerror or str(error) or type(error).__name__
        kind = NotFoundError if isinstance(error, FileNotFoundError) else DataError
        cause = masked_cause(error, secrets)
        remedy = remedy_of(protocol_of(url), verb, error) or _remedy_of_silence(url, error)
        problem = f"cannot {verb} {redact(url)}: {_cleaned(why, url, secrets)}"
        raise kind(problem.rstrip(".") if remedy else problem, remedy=remedy) from cause
    except Exception as error:
        if is_local(url):
            if isinstance(error, ValueError):  # a NUL in a path
                raise UsageError(f"cannot {verb} {url!r}: {error}") from error
            raise
        know_url(url)
        # the clouds' libraries raise types of their own
        why = f"{type(error).__name__}: {_cleaned(str(error), url, secrets)}"
        if is_unreadable(error) and verb != CONNECTING:
            why = f"the store's answer cannot be read ({why})"
        cause = masked_cause(error, secrets)
        remedy = remedy_of(protocol_of(url), verb, error) or _remedy_of_silence(url, error)
        raise DataError(f"cannot {verb} {redact(url)}: {why}", remedy=remedy) from cause


def _remedy_of_silence(url: str, error: BaseException) -> str:
    """Return what to do about a store that does not answer; empty for another error."""
    kinds = {kind.__name__ for each in causes_of(error) for kind in type(each).__mro__}
    if is_local(url) or _SILENT_TYPES.isdisjoint(kinds):
        return ""
    here = socket.gethostname()
    return (
        f"the store did not answer {here}: check the link between them, and the address of the "
        "store in {storage_options}, and run the same command again"
    )


def _cleaned(text: str, url: str, secrets: Collection[str]) -> str:
    """Return a library's message, which may repeat the URL or an option, in one safe line."""
    text = text.replace(url, redact(url))
    text = masked_message(text, secrets)
    text = " ".join(text.partition("\nRequestId:")[0].split())
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + "…"

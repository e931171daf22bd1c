"""What storage raises: made into errors of ours that name the file and hide what is secret, and
told apart into what passes and what stays."""

from __future__ import annotations

import contextlib
import errno
import re
import time
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from bpe_beam.errors import DataError, NotFoundError, UsageError
from bpe_beam.storage.names import is_local, redact

ATTEMPTS = 6
PATIENCE_SECONDS = 30.0
"""After so long nothing is tried again that failed otherwise than by silence."""
CONNECT_SECONDS = 20
SILENCE_SECONDS = 30
"""How long a client waits for a connection and for the next bytes of an answer, where we decide."""
STALLED_PATIENCE_SECONDS = 240.0
"""After so long silence is not tried again either. A client that has tried for long itself, which
shows by more than two silences in one call, is asked no more."""
CONNECTING = "reach"
"""The verb of errors that are raised before anything is asked of a store."""
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_MESSAGE = 500

_PASSING_STATUS = {408, 429, 500, 502, 503, 504}
_PASSING_NUMBERS = {
    errno.EAGAIN,
    errno.EBUSY,  # what s3fs makes of "SlowDown" and 503
    errno.ECONNABORTED,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EPIPE,
    errno.ETIMEDOUT,
    getattr(errno, "EREMOTEIO", errno.EIO),  # what s3fs makes of 500
}
# By name, so that no cloud's library has to be there.
_PASSING_TYPES = {
    "ChunkedEncodingError",
    "ClientConnectionError",
    "ClientPayloadError",
    "ConnectTimeout",
    "ConnectionError",
    "FlexibleChecksumError",  # botocore's, of content that is not what its checksum says
    "HTTPClientError",
    "IncompleteRead",
    "IncompleteReadError",
    "IncompleteBody",
    "NetworkError",
    "ProtocolError",
    "ReadTimeout",
    "RemoteProtocolError",
    "ServiceRequestError",
    "ServiceResponseError",
    "TimeoutError",
    "TimeoutException",
    "TransportError",
}
# What the clouds' libraries raise over an answer of status 200 that lacks what it should have.
_UNREADABLE_TYPES = {
    "AttributeError",
    "JSONDecodeError",
    "KeyError",
    "ParseError",
    "ResponseParserError",
    "TypeError",
}
_URL_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s'\"<>]+")
_SECRET_IN_TEXT = re.compile(r"(?i)\b(sig|signature|x-amz-[a-z-]+|token|key)=[^&\s'\"]+")

T = TypeVar("T")


class ShortRead(OSError):
    """A range was answered with fewer bytes than it has. May pass."""


class EmptyAnswer(OSError):
    """A store has answered that all is well, and left out the answer's content. May pass."""


class Changed(OSError):
    """The file is another one than when it was opened. Stays."""


@contextlib.contextmanager
def named_errors(verb: str, url: str, secrets: Collection[str] = ()) -> Iterator[None]:
    """Turns what storage raises inside the block into an error of ours that names the path, as in
    "cannot <verb> <url>: no space left on device".

    Args:
        verb: What is being done.
        url: With what.
        secrets: Texts that must not stand in the message.
    """
    try:
        yield
    except (UsageError, DataError):
        raise
    except OSError as error:
        # of a file that is not there the stores only repeat the path
        missing = "No such file or directory" if isinstance(error, FileNotFoundError) else ""
        if missing and verb == "write" and not is_local(url):
            missing = "there is no such bucket or folder to write to"
        # the clouds' libraries put a sentence where the number belongs, or beside it
        told = missing or ("" if is_local(url) else str(error.args[-1] if error.args else ""))
        why = told or error.strerror or str(error) or type(error).__name__
        kind = NotFoundError if isinstance(error, FileNotFoundError) else DataError
        raise kind(f"cannot {verb} {redact(url)}: {_clean(why, url, secrets)}") from error
    except Exception as error:
        if is_local(url):
            if isinstance(error, ValueError):  # a NUL in a path
                raise UsageError(f"cannot {verb} {url!r}: {error}") from error
            raise
        # the clouds' libraries raise types of their own
        why = f"{type(error).__name__}: {_clean(str(error), url, secrets)}"
        if _is_unreadable(error) and verb != CONNECTING:
            why = f"the store's answer cannot be read ({why})"
        raise DataError(f"cannot {verb} {redact(url)}: {why}") from error


def retried(call: Callable[[], T]) -> T:
    """Calls until it goes well: again after what may pass, with longer and longer waits.

    What may pass: a connection refused, reset or cut, a time-out, an answer shorter than asked
    for, and the statuses 408, 429, 500, 502, 503, 504 (S3's `SlowDown` among them). All else is
    raised at once. At most ATTEMPTS calls, and none after PATIENCE_SECONDS: where a cloud's own
    library has already tried for so long, it is not asked again. Answers that stay away are
    asked for again until STALLED_PATIENCE_SECONDS.
    """
    began = time.monotonic()
    for attempt in range(1, ATTEMPTS + 1):
        asked = time.monotonic()
        try:
            return call()
        except Exception as error:
            import random  # rarely needed, and slow to import

            wait = _FIRST_WAIT_SECONDS * 2 ** (attempt - 1) * random.uniform(0.5, 1)
            now = time.monotonic()
            silent = _timed_out(error) and now - asked <= 2 * SILENCE_SECONDS
            patience = STALLED_PATIENCE_SECONDS if silent else PATIENCE_SECONDS
            late = now - began + wait > patience
            if attempt == ATTEMPTS or late or not may_pass(error):
                raise
            time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def may_pass(error: BaseException) -> bool:
    """Whether the same call may go well a little later."""
    connecting = False
    for each in _chain(error):
        # Nothing was asked yet: an error of such a type is about the options.
        connecting |= isinstance(each, DataError) and str(each).startswith(f"cannot {CONNECTING} ")
        if isinstance(each, FileNotFoundError | PermissionError | Changed | UsageError):
            return False
        status = _status(each)
        if status is not None:
            return status in _PASSING_STATUS
        if isinstance(each, ShortRead | EmptyAnswer | ConnectionError | TimeoutError):
            return True
        if (_is_unreadable(each) and not connecting) or _is_success(each):
            return True
        if isinstance(each, OSError) and each.errno in _PASSING_NUMBERS:
            return True
        if {kind.__name__ for kind in type(each).__mro__} & _PASSING_TYPES:
            return True
    return False


def _timed_out(error: BaseException) -> bool:
    """Whether an answer did not come in time."""
    return any(
        isinstance(each, TimeoutError)
        or {kind.__name__ for kind in type(each).__mro__} & {"ConnectTimeout", "TimeoutException"}
        for each in _chain(error)
    )


def _is_unreadable(error: BaseException) -> bool:
    """Whether a library failed over what a store has answered. Any error of these types counts: one
    that is a mistake in a program is raised a little later."""
    return type(error).__name__ in _UNREADABLE_TYPES


def _is_success(error: BaseException) -> bool:
    """Whether an error is about a status that says that all is well: Azure's client, over a status
    that is not that of the request."""
    status = getattr(error, "status_code", None)
    return isinstance(status, int) and 200 <= status < 300


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    for _ in range(10):
        if each is None:
            return
        yield each
        each = each.__cause__


def _status(error: BaseException) -> int | None:
    """The HTTP status that an error of some library carries."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):  # botocore
        answer = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return answer if isinstance(answer, int) else None
    for holder in (error, answer):
        for name in ("status", "status_code", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, str) and value.isdigit():
                value = int(value)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def _clean(text: str, url: str, secrets: Collection[str]) -> str:
    """What an error says, in one line, without secrets: it may repeat the URL or an option."""
    text = text.replace(url, redact(url))
    text = _URL_IN_TEXT.sub(lambda found: redact(found[0]), text)
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _SECRET_IN_TEXT.sub(r"\1=***", text)
    text = " ".join(text.partition("\nRequestId:")[0].split())
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "…"

"""Retries of storage calls: the errors that may pass, the number of calls, and their time."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from bpe_beam.errors import DataError, UsageError

REQUESTS_AT_ONCE = 32
"""The requests of one process to a store at the same time."""
ATTEMPTS = 6
"""Calls in total, with the first."""
PATIENCE_SECONDS = 30.0
"""The time after which a call is not repeated, unless it failed because no answer came."""
CONNECT_SECONDS = 20
"""A client's wait for a connection, where this package sets the client's limits."""
SILENCE_SECONDS = 30
"""A client's wait for the next bytes of an answer, where this package sets its limits."""
STALLED_PATIENCE_SECONDS = 240.0
"""The time after which a call without an answer is not repeated either."""
UPLOAD_PATIENCE_SECONDS = 600.0
"""The time after which a part of an upload is not sent again. It is long, because giving up loses
the parts that were sent before."""
CONNECTING = "reach"
"""The verb of the message if connecting to a store fails: "cannot reach URL"."""
_FIRST_WAIT_SECONDS = 0.5

_PASSING_STATUS = {408, 429, 500, 502, 503, 504}
_PASSING_NUMBERS = {
    errno.EAGAIN,
    errno.EBUSY,  # s3fs's error for "SlowDown" and 503
    errno.ECONNABORTED,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EPIPE,
    errno.ETIMEDOUT,
    getattr(errno, "EREMOTEIO", errno.EIO),  # s3fs's error for 500
}
# By name, so that no cloud's library must be installed.
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
# The errors of the clouds' libraries for an answer of status 200 without its content.
_UNREADABLE_TYPES = {
    "AttributeError",
    "JSONDecodeError",
    "KeyError",
    "ParseError",
    "ResponseParserError",
    "TypeError",
}

T = TypeVar("T")


class ShortReadError(OSError):
    """The answer to a range has another length than the range. May pass."""


class EmptyAnswerError(OSError):
    """A store reported success without the content of the answer. May pass."""


class FileChangedError(OSError):
    """The file's content is not the one that was opened. Does not pass."""


def retried(call: Callable[[], T], min_patience: float = 0.0) -> T:
    """Return the result of a call, which is repeated after errors that may pass.

    Errors that may pass: a connection refused, reset or cut, a time-out, an answer that is shorter
    than requested, and statuses such as 429 and 503 (S3's `SlowDown`). All others are raised at
    once. The waits between calls double. There are at most ATTEMPTS calls, and none after
    PATIENCE_SECONDS, since a cloud's own library may have repeated the request that long. A call
    that timed out is repeated until STALLED_PATIENCE_SECONDS, unless it took more than
    2 * SILENCE_SECONDS: then its client has already repeated the request itself.
    """
    began = time.monotonic()
    for attempt in range(1, ATTEMPTS + 1):
        called = time.monotonic()
        try:
            return call()
        except Exception as error:
            import random  # rarely needed, and slow to import

            wait = _FIRST_WAIT_SECONDS * 2 ** (attempt - 1) * random.uniform(0.5, 1)
            now = time.monotonic()
            silent = _timed_out(error) and now - called <= 2 * SILENCE_SECONDS
            patience = STALLED_PATIENCE_SECONDS if silent else PATIENCE_SECONDS
            late = now - began + wait > max(patience, min_patience)
            if attempt == ATTEMPTS or late or not may_pass(error):
                raise
            time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def may_pass(error: BaseException) -> bool:
    """Return whether the same call may succeed a little later."""
    connecting = False
    for each in causes_of(error):
        # While connecting, an error of _UNREADABLE_TYPES is about the options, not about an answer.
        connecting |= isinstance(each, DataError) and str(each).startswith(f"cannot {CONNECTING} ")
        if isinstance(each, FileNotFoundError | PermissionError | FileChangedError | UsageError):
            return False
        status = status_of(each)
        if status is not None:
            return status in _PASSING_STATUS
        if isinstance(each, ShortReadError | EmptyAnswerError | ConnectionError | TimeoutError):
            return True
        if is_unreadable(each) and not connecting:
            return True
        # Azure's client has errors for a status of success that does not belong to the request.
        if getattr(each, "status_code", None) in range(200, 300):
            return True
        if isinstance(each, OSError) and each.errno in _PASSING_NUMBERS:
            return True
        if not _PASSING_TYPES.isdisjoint(_type_names(each)):
            return True
    return False


def _timed_out(error: BaseException) -> bool:
    """Return whether an answer did not come in time."""
    names = {"ConnectTimeout", "TimeoutException"}
    return any(
        isinstance(each, TimeoutError) or not names.isdisjoint(_type_names(each))
        for each in causes_of(error)
    )


def _type_names(error: BaseException) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


def is_unreadable(error: BaseException) -> bool:
    """Return whether a library failed on the answer of a store.

    Any error of these types counts. So a defect of this package may be repeated, too, and is then
    raised a little later.
    """
    return type(error).__name__ in _UNREADABLE_TYPES


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, at most ten."""
    each: BaseException | None = error
    for _ in range(10):
        if each is None:
            return
        yield each
        each = each.__cause__


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error of some library carries; None without one."""
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

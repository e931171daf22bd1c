"""Errors of storage: which may pass, how often they are tried, and what they may say."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import retry
from bpe_beam.storage.retry import (
    ATTEMPTS,
    SILENCE_SECONDS,
    EmptyAnswerError,
    FileChangedError,
    ShortReadError,
    may_pass,
    retried,
)

pytestmark = pytest.mark.quick


class WithStatus(Exception):
    """As aiohttp's, Azure's and Google's errors have it."""

    def __init__(self, name: str, status: object) -> None:
        super().__init__("an answer")
        setattr(self, name, status)


class ClientError(Exception):
    """As botocore's."""

    def __init__(self, status: int) -> None:
        super().__init__("an answer")
        self.response = {"ResponseMetadata": {"HTTPStatusCode": status}}


class ServerDisconnectedError(type("ClientConnectionError", (Exception,), {})):  # type: ignore[misc]
    """As aiohttp's, which is no ConnectionError of Python's in each version."""


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        TimeoutError(),
        asyncio.TimeoutError(),
        OSError(errno.EBUSY, "slow down"),
        OSError(errno.ECONNREFUSED, "refused"),
        ShortReadError("short"),
        ServerDisconnectedError(),
        *(WithStatus("status", code) for code in (408, 429, 500, 502, 503, 504)),
        WithStatus("status_code", 503),
        WithStatus("code", "503"),
        ClientError(503),
        caused(OSError(errno.EIO, "?"), ClientError(500)),
        caused(DataError("cannot read x"), ConnectionResetError()),
        EmptyAnswerError("nothing"),
        json.JSONDecodeError("Expecting value", "", 0),
        caused(DataError("cannot write x"), KeyError("Location")),
        WithStatus("status_code", 200),
        type("FlexibleChecksumError", (Exception,), {})(),
    ],
)
def test_what_may_pass(error: Exception) -> None:
    assert may_pass(error)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(),
        PermissionError(),
        OSError(errno.ENOSPC, "full"),
        ValueError("?"),
        UsageError("?"),
        DataError("?"),
        FileChangedError("other bytes"),
        WithStatus("status", 404),
        WithStatus("status", 403),
        WithStatus("code", None),
        ClientError(403),
        caused(PermissionError("no"), ClientError(503)),
        caused(DataError("cannot read x"), FileNotFoundError()),
        caused(DataError("cannot reach x: TypeError: no such option"), TypeError()),
    ],
)
def test_what_stays(error: Exception) -> None:
    assert not may_pass(error)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, which take no time but on this clock; its first entry is when it starts."""
    waits = [0.0]
    # Not the module's own functions: other threads wait by them.
    ours = SimpleNamespace(sleep=waits.append, monotonic=lambda: sum(waits))
    monkeypatch.setattr(retry, "time", ours)
    return waits


def failing(times: int, error: Exception) -> tuple[Callable[[], str], list[int]]:
    calls: list[int] = []

    def call() -> str:
        calls.append(1)
        if len(calls) <= times:
            raise error
        return "done"

    return call, calls


def test_waits_grow(clock: list[float]) -> None:
    call, calls = failing(ATTEMPTS - 1, TimeoutError())
    assert retried(call) == "done"
    assert len(calls) == ATTEMPTS
    for number, wait in enumerate(clock[1:]):
        assert 0.25 * 2**number <= wait <= 0.5 * 2**number


def test_attempts_end(clock: list[float]) -> None:
    call, calls = failing(99, TimeoutError())
    with pytest.raises(TimeoutError):
        retried(call)
    assert len(calls) == ATTEMPTS
    call, calls = failing(99, PermissionError())
    with pytest.raises(PermissionError):
        retried(call)
    assert len(calls) == 1


def test_what_took_long_is_not_tried_again(clock: list[float]) -> None:
    def call() -> None:
        clock.append(90)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        retried(call)
    assert clock == [0, 90]


def test_silence_is_tried_again_for_longer_than_errors(clock: list[float]) -> None:
    def call(error: Exception) -> None:
        clock.append(SILENCE_SECONDS)
        raise error

    for error, calls in ((TimeoutError(), ATTEMPTS), (ConnectionResetError(), 1)):
        before = clock.count(SILENCE_SECONDS)
        with pytest.raises(type(error)):
            retried(lambda error=error: call(error))  # type: ignore[misc]
        assert clock.count(SILENCE_SECONDS) - before == calls

"""Files that are removed, many by one request."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from bpe_beam.errors import DataError
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.folders.run_folder import remove_all_in
from bpe_beam.storage import Storage, remote_store, retry

pytestmark = pytest.mark.quick

URLS = [f"s3://bucket/out/{number}" for number in range(2100)]
Answer = Callable[[int], Mapping[str, Any]]
ResponseParserError = type("ResponseParserError", (Exception,), {})


class Clock:
    """A time that passes only in waits."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(retry, "time", clock)
    return clock


def answering(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> list[tuple[str, int]]:
    """Answer the removals of S3 by their numbers; return the first key and count of each."""
    requests: list[tuple[str, int]] = []

    def call_s3(_: str, Bucket: str, Delete: Mapping[str, Any]) -> Mapping[str, Any]:
        assert Bucket == "bucket"
        requests.append((Delete["Objects"][0]["Key"], len(Delete["Objects"])))
        return answer(len(requests))

    fs = SimpleNamespace(call_s3=call_s3, split_path=lambda path: (*path.split("/", 1), None))
    monkeypatch.setattr(remote_store.RemoteStore, "connect", lambda *_, **__: (fs, ""))
    return requests


def test_a_removal_is_repeated_by_itself(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """The requests of a long list take longer together than one is repeated."""

    def answer(number: int) -> Mapping[str, Any]:
        clock.sleep(retry.PATIENCE_SECONDS * (number in (1, 3)))
        if number in (2, *more):
            raise OSError(errno.EBUSY, "slow down")
        return {}

    more = range(0)
    requests = answering(monkeypatch, answer)
    assert Storage().remove_all(URLS) == []
    counts = [("out/0", 1000), ("out/1000", 1000), ("out/1000", 1000), ("out/2000", 100)]
    assert requests == counts
    more = range(2, 100)
    requests.clear()
    with pytest.raises(DataError, match="cannot remove s3://bucket/out/1000: slow down"):
        Storage().remove_all(URLS)


def test_only_objects_that_remain_are_removed_singly(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    def answer(number: int) -> Mapping[str, Any]:
        if number == 1:
            return {"Errors": [{"Key": "out/7", "Code": "InternalError"}]}
        raise ResponseParserError

    removed: list[str] = []
    monkeypatch.setattr(Storage, "remove", lambda _, url: removed.append(url))
    requests = answering(monkeypatch, answer)
    TaskFolder(Storage(), "s3://bucket/out", "").remove(map(str, range(2100)))
    assert sorted(removed) == sorted([URLS[7], *URLS[1000:]])
    assert (len(requests), clock.now) == (2, 0)
    requests = answering(monkeypatch, lambda _: {"Errors": [{"Key": "out%2F7"}]})
    assert Storage().remove_all(URLS[:10]) == URLS[:10]


def test_a_folder_is_removed_without_a_look_at_each_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage = Storage()
    files = [f"memory://bucket/[r]emoved/{name}" for name in ("a", "sub/b", "sub/.c/.d")]
    other = "memory://bucket/removed/a"
    looked: list[str] = []
    is_folder = Storage.is_folder

    def look(self: Storage, url: str) -> bool:
        looked.append(url)
        return is_folder(self, url)

    monkeypatch.setattr(Storage, "is_folder", look)
    for url in (*files, other):
        storage.write_bytes(url, b"x")
    remove_all_in(storage, "memory://bucket/[r]emoved")
    assert [url.rpartition("/")[2] for url in looked] == ["sub", ".c"]
    remove_all_in(storage, "memory://bucket/[r]emoved")  # which matches `removed` as a glob
    assert [storage.exists(url) for url in (*files, other)] == [False] * 3 + [True]
    storage.remove(other)

"""File systems by protocol: options that reach them, and those that are refused."""

from __future__ import annotations

import threading
from typing import Any

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem

from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick


class Cloud(AsyncFileSystem):
    """A store with options, the way the clouds' are made."""

    protocol = ("s3", "s3a")

    def __init__(self, key: str = "", endpoint_url: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.key, self.endpoint_url = key, endpoint_url


@pytest.fixture
def _cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: Cloud)


@pytest.mark.usefixtures("_cloud")
def test_one_for_all_threads_and_one_for_each_set_of_options() -> None:
    found: list[Any] = []
    storage = Storage({"s3": {"key": "somebody"}})

    def ask() -> None:
        found.append(storage.remote.connect("s3://bucket/key")[0])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(fs) for fs in found}) == 1
    assert found[0].key == "somebody"
    other = Storage({"s3": {"key": "somebody else"}}).remote.connect("s3://bucket/key")[0]
    assert other.key == "somebody else"
    # both spellings of the protocol count, the URL's own most
    both = Storage({"s3a": {"key": "a", "endpoint_url": "e"}, "s3": {"key": "b"}})
    fs = both.remote.connect("s3a://bucket/key")[0]
    assert (fs.key, fs.endpoint_url) == ("b", "e")
    # others write to the same store
    assert not fs.dircache.use_listings_cache


@pytest.mark.usefixtures("_cloud")
def test_an_option_that_would_do_nothing_is_refused() -> None:
    storage = Storage({"s3": {"endpont_url": "hunter2"}})
    with pytest.raises(UsageError, match="'endpont_url' is not an option of s3; did you mean"):
        storage.exists("s3://bucket/key")
    assert Storage({"s3": {"profile": "dev"}}).remote.connect("s3://bucket/key")
    with pytest.raises(UsageError, match=r"'foo' is not an option of s3$"):
        Storage({"s3": {"foo": 1}}).remote.connect("s3://bucket/key")
    # what adlfs does not know itself it hands on
    assert Storage({"az": {"exclude_cli_credential": True}}).remote.connect("az://bucket/key")
    with pytest.raises(UsageError, match="'endpont_url' is not an option of az; did you mean"):
        Storage({"az": {"endpont_url": "x"}}).remote.connect("az://bucket/key")


def test_options_for_a_protocol_that_there_is_none_of() -> None:
    with pytest.raises(UsageError, match=r"the protocol 'S3' is unknown; did you mean s3\?"):
        Storage({"S3": {"key": "hunter2"}})
    with pytest.raises(UsageError, match=r"the protocol 's4' is unknown; did you mean s3\?"):
        Storage().exists("s4://bucket/key")
    # of a protocol that a job does not use they do no harm
    storage = Storage({"gcs": {"token": "t"}, "s3a": {}})
    storage.write_bytes("memory://bucket/key", b"x")
    assert storage.exists("memory://bucket/key")


@pytest.mark.parametrize(
    ("url", "extra"),
    [
        ("s3://b/k", "s3"),
        ("gs://b/k", "gcs"),
        ("gcs://b/k", "gcs"),
        ("az://b/k", "azure"),
        ("abfss://c@a.dfs.core.windows.net/k", "azure"),
        ("hf://datasets/a/b/c", "hf"),
        ("https://host/a", "http"),
    ],
)
def test_what_to_install_is_said(url: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(protocol: str) -> None:
        raise ImportError("no")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(UsageError, match=rf"pip install 'bpe-beam\[{extra}\]'"):
        Storage().open(url)

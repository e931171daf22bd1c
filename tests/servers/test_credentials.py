"""Missing, wrong and expired credentials, and missing buckets: each message says what to do."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from command_line import run
from stores import AZURE_KEY, Store, s3_options

from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.servers

REFUSED = (
    "the store refuses the credentials, or they lack the right to do this, or the clock of "
    f"{socket.gethostname()} is wrong: give "
)


def s3_without(store: Store, **more: Any) -> Storage:
    """Return a client without the key and the secret."""
    options = s3_options(store.port, **more)
    del options["s3"]["key"], options["s3"]["secret"]
    return Storage(options)


def check(storage: Storage, url: str, expected: str) -> None:
    """Check the message of reading, listing and writing."""
    for call in (
        storage.read_bytes,
        storage.expand,
        storage.list_names,
        lambda url: storage.write_bytes(url, b"x"),
    ):
        with pytest.raises(DataError) as caught:
            call(url)
        assert expected in str(caught.value)


def test_s3(start_store: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch) -> None:
    store = start_store("versitygw")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
    url = f"{store.folder()}/file"
    store.storage.write_bytes(url, b"text")
    check(Storage(s3_options(store.port, secret="not-the-secret")), url, REFUSED)
    check(Storage(s3_options(store.port, key="not-the-user")), url, REFUSED)
    check(s3_without(store), url, "no credentials were found: give key and secret of s3")
    check(s3_without(store, anon=True), url, REFUSED)
    check(Storage(s3_options(store.port, token="expired")), url, "the credentials have expired, or")
    told = Storage(s3_options(store.port, key="not-the-user")).options
    ran = run("plan", "--input", url, "--storage-options", json.dumps(told))
    assert ran.code == 1
    assert "(and token, if they are temporary) in --storage-options" in ran.message


def test_azure(start_store: Callable[[str], Store]) -> None:
    store = start_store("azurite")
    url = f"{store.folder()}/file"
    told = store.options["az"]["connection_string"].replace(AZURE_KEY, "d3Jvbmc=")
    check(Storage({"az": {"connection_string": told}}), url, REFUSED)
    check(Storage({"az": {"connection_string": "none"}}), url, "AZURE_STORAGE_CONNECTION_STRING")
    check(Storage(), url, "no credentials were found: give connection_string of az")


def test_a_missing_bucket(store: Store) -> None:
    missing = f"{store.top}-missing"
    for pattern in (f"{missing}/in/", f"{missing}/*.txt", f"{missing}/a.txt"):
        with pytest.raises(UsageError, match=f"there is no bucket {missing}; check its name"):
            make_plan(store.storage, [pattern])
    with pytest.raises(UsageError, match="no file matches"):
        make_plan(store.storage, [f"{store.top}/nothing/*.txt"])
    with pytest.raises(DataError, match=r"no such bucket|container does not exist"):
        store.storage.write_bytes(f"{missing}/a.txt", b"x")

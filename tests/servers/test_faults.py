"""Stores that fail: what passes is passed over, what stays is an error; never wrong bytes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from command_line import environment
from faults import Faults, Throttle, Toxiproxy
from stores import Store, s3_options

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage, retry
from bpe_beam.storage import file_systems as clients
from bpe_beam.storage.remote_file import BLOCK
from bpe_beam.storage.uploading import PART

pytestmark = pytest.mark.servers

DATA = random.Random(5).randbytes(3 * BLOCK)
S3_AND_GCS = pytest.mark.parametrize("name", ["versitygw", "fake-gcs-server"])


def cut(after: int, toxicity: float = 1.0) -> dict[str, Any]:
    """Ends a connection after so many bytes of answers."""
    attributes = {"bytes": after}
    return {"type": "limit_data", "attributes": attributes, "toxicity": toxicity}


@pytest.mark.parametrize("name", ["versitygw", "moto", "fake-gcs-server"])
def test_a_connection_cut_in_the_middle_of_an_object(
    name: str, start_store: Callable[[str], Store], toxiproxy: Toxiproxy
) -> None:
    store = start_store(name)
    url = f"{store.folder()}/file"
    store.storage.write_bytes(url, DATA)
    # a connection serves some requests, and ends in one
    with toxiproxy.before(store, cut(BLOCK + BLOCK // 2)) as behind:
        assert behind.storage.read_bytes(url) == DATA


@S3_AND_GCS
def test_connections_that_are_reset(
    name: str, start_store: Callable[[str], Store], toxiproxy: Toxiproxy
) -> None:
    store = start_store(name)
    url = f"{store.folder()}/file"
    store.storage.write_bytes(url, DATA)
    reset = {"type": "reset_peer", "attributes": {"timeout": 0}, "toxicity": 0.4}
    with toxiproxy.before(store, reset) as behind:
        assert behind.storage.read_bytes(url) == DATA
        assert [found.size for found in behind.storage.expand(f"{url[:-1]}*")] == [len(DATA)]


@S3_AND_GCS
def test_a_slow_network(
    name: str, start_store: Callable[[str], Store], toxiproxy: Toxiproxy
) -> None:
    store = start_store(name)
    url = f"{store.folder()}/file"
    slow = {"type": "latency", "attributes": {"latency": 200, "jitter": 100}}
    with toxiproxy.before(store, slow) as behind:
        behind.storage.write_bytes(url, DATA)
        assert behind.storage.read_bytes(url) == DATA


def test_what_never_gets_better_is_an_error(
    start_store: Callable[[str], Store], toxiproxy: Toxiproxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = start_store("versitygw")
    url = f"{store.folder()}/file"
    store.storage.write_bytes(url, DATA)
    monkeypatch.setattr(retry, "PATIENCE_SECONDS", 3.0)
    # headers come through, no block does
    with toxiproxy.before(store, cut(200_000)) as behind:
        began = time.monotonic()
        with pytest.raises(DataError, match=rf"cannot read {url}: "):
            behind.storage.read_bytes(url)
        assert time.monotonic() - began < 300


@S3_AND_GCS
def test_servers_that_say_slow_down(name: str, start_store: Callable[[str], Store]) -> None:
    store = start_store(name)
    folder = store.folder()
    url = f"{folder}/file"
    throttle = Throttle(store, 0)
    with throttle.before() as behind:
        storage = behind.storage
        for call in (
            lambda: storage.write_bytes(url, DATA),
            lambda: storage.stat(url),
            lambda: storage.expand(f"{folder}/*"),
            lambda: storage.list_names(folder),
            lambda: storage.read_bytes(url) == DATA or pytest.fail("other bytes"),
            lambda: storage.remove(url),
        ):
            throttle.left = 2
            call()
            assert throttle.left == 0
    assert not store.storage.exists(url)


@pytest.mark.parametrize("name", ["versitygw", "moto", "fake-gcs-server", "azurite"])
def test_an_object_that_changes_while_it_is_read(
    name: str, start_store: Callable[[str], Store]
) -> None:
    store = start_store(name)
    url = f"{store.folder()}/file"
    store.storage.write_bytes(url, DATA)
    with store.storage.open(url) as stream:
        assert stream.read(10) == DATA[:10]
        store.storage.write_bytes(url, DATA[::-1])
        stream.seek(BLOCK)
        with pytest.raises(DataError, match="cannot read"):
            stream.read(10)


def test_a_killed_writer_leaves_nothing_under_the_name(
    store: Store,
) -> None:
    folder = store.folder()
    url = f"{folder}/file"
    code = (
        "import sys, json, signal\n"
        "from bpe_beam.storage import Storage\n"
        # a shell that runs tests in the background has them ignore it
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with Storage(json.loads(sys.argv[1])).create(sys.argv[2]) as stream:\n"
        f"    stream.write(bytes({2 * PART + 5}))\n"
        "    stream.flush()\n"
        "    print('sent', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen(
            [sys.executable, "-c", code, store.arguments[1], url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"sent\n"
        process.send_signal(how)
        process.communicate(timeout=60)
        assert not store.storage.exists(url)
        assert store.storage.list_names(folder) == []


@pytest.mark.parametrize("name", ["versitygw", "moto"])
def test_uploads_that_were_given_up_are_taken_back(
    name: str, start_store: Callable[[str], Store]
) -> None:
    store = start_store(name)
    fs = store.file_system()
    bucket = store.top.removeprefix("s3://")
    before = fs.call_s3("list_multipart_uploads", Bucket=bucket).get("Uploads", [])
    with pytest.raises(KeyError), store.storage.create(f"{store.folder()}/file") as stream:
        stream.write(bytes(2 * PART))
        stream.flush()
        now = fs.call_s3("list_multipart_uploads", Bucket=bucket).get("Uploads", [])
        assert len(now) == len(before) + 1
        raise KeyError
    after = fs.call_s3("list_multipart_uploads", Bucket=bucket).get("Uploads", [])
    assert len(after) == len(before)


def test_wrong_credentials_fail_at_once_and_show_none(
    start_store: Callable[[str], Store],
) -> None:
    store = start_store("versitygw")
    url = f"{store.folder()}/file"
    store.storage.write_bytes(url, b"text")
    throttle = Throttle(store, 0)
    with throttle.before() as behind:
        for wrong in ({"secret": "not-the-secret"}, {"key": "not-the-user"}):
            storage = Storage(s3_options(behind.port, **wrong))
            for call in (
                lambda storage: storage.read_bytes(url),
                lambda storage: storage.write_bytes(url, b"other"),
                lambda storage: storage.expand(url),
                lambda storage: storage.list_names(store.top),
            ):
                asked = throttle.asked
                with pytest.raises(DataError, match=r"cannot \w+( for)? s3://") as caught:
                    call(storage)
                assert "not-the" not in str(caught.value)
                assert throttle.asked - asked <= 2, "nothing is tried again"
    assert store.storage.read_bytes(url) == b"text"


def use_all(store: Store, behind: Store) -> None:
    """Does everything with a store behind a throttle; each answer must be the right one."""
    folder = store.folder()
    store.storage.write_bytes(f"{folder}/sub/in", DATA[:50_000])
    storage = behind.storage
    storage.write_bytes(f"{folder}/sub/out", DATA[:70_000])
    assert store.storage.read_bytes(f"{folder}/sub/out") == DATA[:70_000]
    assert storage.read_bytes(f"{folder}/sub/in") == DATA[:50_000]
    assert storage.stat(f"{folder}/sub/in").size == 50_000
    assert storage.exists(f"{folder}/sub/in")
    assert storage.list_names(f"{folder}/sub") == ["in", "out"]
    assert len(storage.expand(f"{folder}/*/in")) == 1
    assert len(storage.expand(f"{folder}/sub/*")) == 2
    storage.move(f"{folder}/sub/in", f"{folder}/sub/moved")
    assert store.storage.list_names(f"{folder}/sub") == ["moved", "out"]
    if store.top.startswith("gs"):
        return  # an upload in parts does not survive an answer without content
    with storage.create(f"{folder}/large") as stream:
        stream.write(bytes(PART + 9))
    assert store.storage.size(f"{folder}/large") == PART + 9


@pytest.mark.parametrize("name", ["versitygw", "moto", "fake-gcs-server", "azurite"])
def test_answers_without_content(name: str, start_store: Callable[[str], Store]) -> None:
    """Status 200 and nothing else is a fault, and never an empty listing or file."""
    store = start_store(name)
    faults = Faults(store, "empty", 0.2, seed=1)
    with faults.before() as behind:
        use_all(store, behind)
    assert faults.spoiled


@pytest.mark.parametrize("name", ["versitygw", "fake-gcs-server", "azurite"])
@pytest.mark.parametrize("how", ["stalled", "half"])
def test_answers_that_never_come(
    name: str, how: str, start_store: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "SILENCE_SECONDS", 2)
    store = start_store(name)
    faults = Faults(store, how, 0.2, seed=2)
    with faults.before() as behind:
        for options in behind.options.values():
            if name == "versitygw":
                options["config_kwargs"] = {"read_timeout": 2}
        use_all(store, behind)
    assert faults.spoiled


@pytest.mark.parametrize("only", ["comp=block&", "comp=blocklist"])
def test_five_stalls_in_a_row_do_not_end_an_upload_to_azure(
    only: str, start_store: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Azure's own client gives a block, or the list of all blocks, up after four."""
    monkeypatch.setattr(clients, "SILENCE_SECONDS", 1)
    store = start_store("azurite")
    url = f"{store.folder()}/file"
    data = random.Random(6).randbytes(2 * PART + 9)
    faults = Faults(store, "stalled", only=only, most=5)
    with faults.before() as behind, behind.storage.create(url) as stream:
        stream.write(data)
    assert len(faults.spoiled) == 5
    assert store.storage.read_bytes(url) == data


def test_an_upload_that_ends_without_an_answer(
    start_store: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client asks again, and there is no such upload any more: it has become the object."""
    monkeypatch.setattr(clients, "SILENCE_SECONDS", 1)
    store = start_store("fake-gcs-server")
    url = f"{store.folder()}/file"
    store.storage.write_bytes(url, b"before")
    with Faults(store, "stalled").before() as behind, behind.storage.create(url) as stream:
        stream.write(b"after")
    assert store.storage.read_bytes(url) == b"after"


@pytest.mark.parametrize("name", ["versitygw", "fake-gcs-server", "azurite"])
def test_requests_that_are_never_taken(
    name: str, start_store: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait for an answer begins when the request is sent; sending has an end of its own."""
    monkeypatch.setattr(clients, "SILENCE_SECONDS", 1)
    store = start_store(name)
    url = f"{store.folder()}/file"
    faults = Faults(store, "unread")
    with faults.before() as behind:
        behind.storage.write_bytes(url, bytes(PART))
    assert faults.spoiled
    assert store.storage.size(url) == PART


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(
    start_store: Callable[[str], Store],
) -> None:
    store = start_store("versitygw")
    folder = store.folder()
    for name in ("a", "b", "c"):
        store.storage.write_bytes(f"{folder}/{name}/file", b"text")
    with Faults(store, "refused", only="%2Fb%2F").before() as behind:
        assert len(behind.storage.expand(f"{folder}/a/*")) == 1
        with pytest.raises(DataError, match="cannot list"):
            behind.storage.expand(f"{folder}/*/file")

"""Objects whose keys are no names of files: each is read, as the same bytes under a plain name."""

from __future__ import annotations

import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import stream_by_hand
from command_line import run_whole
from made_text import documents, write
from read_back import tree
from stores import BUCKET, Store

from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.jobs import stream_tokenize

pytestmark = pytest.mark.servers

KEYS = (
    *("/x.jsonl", "//x.jsonl", "x.jsonl", "deep//x.jsonl", "deep///er/x.jsonl", "ends//x//"),
    *("sub/", "sub/x.jsonl", "p", "p/q.jsonl", "é ü.jsonl", "a#1%41?b=c&d.jsonl", "~a::b+c.jsonl"),
    *("new\nline\t.jsonl", "[x]*?.jsonl", "s3://x", "a?versionId=3", "a?versionid=3"),
    *("./x.jsonl", "../x.jsonl"),
)
"""Keys below a folder."""
REFUSED = {
    "moto": {"new\nline\t.jsonl"},
    "azurite": {"./x.jsonl", "../x.jsonl"},  # by Azure's client
}
"""Keys that a server or its client cannot have."""


def put(store: Store, key: str, data: bytes) -> None:
    """Put an object by a request of the store's own."""
    if store.name == "fake-gcs-server":
        where = f"upload/storage/v1/b/{BUCKET}/o?uploadType=media"
        name = urllib.parse.quote(key, safe="")
        url = f"http://127.0.0.1:{store.port}/{where}&name={name}"
        urllib.request.urlopen(urllib.request.Request(url, data, method="POST")).close()
    elif store.name == "azurite":
        from azure.storage.blob import BlobServiceClient

        told = store.options["az"]["connection_string"]
        with BlobServiceClient.from_connection_string(told) as service:
            service.get_blob_client(BUCKET, key).upload_blob(data)
    else:
        store.file_system().call_s3("put_object", Bucket=BUCKET, Key=key, Body=data)


@pytest.fixture(params=["moto", "fake-gcs-server", "azurite"])
def store(request: pytest.FixtureRequest, start_store: Callable[[str], Store]) -> Store:
    """Return each of the stores that can have such keys."""
    return start_store(request.param)


@pytest.fixture
def keys(store: Store) -> list[str]:
    """Return the keys that this store can have."""
    return sorted(set(KEYS) - REFUSED.get(store.name, set()))


def test_every_key_is_listed_once_and_can_be_read(store: Store, keys: list[str]) -> None:
    storage, folder = store.storage, store.folder()
    top = folder.removeprefix(f"{store.top}/")
    for key in keys:
        put(store, f"{top}/{key}", key.encode())
    put(store, f"{top}/empty/", b"")  # shows a folder
    for pattern in ("**", "**/*"):
        files = storage.expand(f"{folder}/{pattern}")
        assert [file.url for file in files] == sorted(f"{folder}/{key}" for key in keys)
    for file, key in zip(files, keys, strict=True):
        assert storage.stat(file.url) == file
        assert storage.read_head(file.url, 2) == key.encode()[:2]
        assert storage.read_bytes(file.url) == key.encode()
    for pattern in (folder, f"{folder}/", f"{folder}/**/*"):
        plan = make_plan(storage, [pattern], input_format="text")
        assert [file.name for file in plan.files] == keys
        assert [plan.url(number) for number in range(len(keys))] == [file.url for file in files]
        watched = Watched.of(storage, [pattern])
        assert sorted(watched.look(storage)) == sorted(zip(keys, files, strict=True))
    names = {key.split("/")[0] for key in keys} | {"empty"}
    assert storage.list_names(folder) == sorted(names - {""})


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("//", ["//x.jsonl"]),
        ("//x.jsonl", ["//x.jsonl"]),
        ("//*", ["//x.jsonl"]),
        ("p", ["p"]),
        ("p/", ["q.jsonl"]),
        ("p*", ["p"]),
        ("sub/", ["sub/", "sub/x.jsonl"]),
        ("sub/*", ["sub/", "sub/x.jsonl"]),
        ("deep/*/x.jsonl", ["/x.jsonl"]),
    ],
)
def test_patterns(store: Store, pattern: str, expected: list[str]) -> None:
    folder = f"{store.top}/patterns"
    if not store.storage.exists(f"{folder}/p"):
        for key in (
            "x.jsonl",
            "//x.jsonl",
            "deep//x.jsonl",
            "sub/",
            "sub/x.jsonl",
            "p/q.jsonl",
            "p",
        ):
            put(store, f"patterns/{key}", b"text")
    plan = make_plan(store.storage, [f"{folder}/{pattern}"], input_format="text")
    assert [file.name for file in plan.files] == expected
    assert store.storage.read_bytes(plan.url(0)) == b"text"


def test_the_folder_itself_may_have_content(store: Store) -> None:
    folder = store.folder()
    top = folder.removeprefix(f"{store.top}/")
    put(store, f"{top}/", b"of the folder")
    put(store, f"{top}/x", b"of a file")
    plan = make_plan(store.storage, [folder], input_format="text")
    assert [file.name for file in plan.files] == [f"{top}/", f"{top}/x"]
    assert store.storage.read_bytes(plan.url(0)) == b"of the folder"
    watched = Watched.of(store.storage, [folder])
    for name, file in watched.look(store.storage):
        assert store.storage.join(watched.root, name) == file.url


def test_jobs_write_the_bytes_of_plain_names(
    store: Store, keys: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_tokenize, "run_pipeline", stream_by_hand.run_pipeline)
    folder = store.folder()
    for number, key in enumerate(keys):
        path = tmp_path / "plain" / f"{number:02}.jsonl"
        write(path, documents(20, seed=number))
        put(store, f"{folder.removeprefix(f'{store.top}/')}/{key}", path.read_bytes())
    inputs = (str(tmp_path / "plain"), f"{folder}/")
    for name, where in zip(("plain", "odd"), inputs, strict=True):
        reading = ("--input", where, "--input-format", "jsonl", *store.arguments)
        run_whole("train", *reading, "--vocab-size", "500", "--output", tmp_path / f"tok-{name}")
        tokenizer = ("--tokenizer", tmp_path / "tok-plain" / "tokenizer.json")
        run_whole("tokenize", *reading, *tokenizer, "--output", tmp_path / f"tokens-{name}")
        times = ("--window-seconds", "0", "--until-idle-seconds", "0", "--runner", "PrismRunner")
        output = ("--output", tmp_path / f"windows-{name}")
        run_whole("stream-tokenize", *reading, *tokenizer, *times, *output)
    for results in ("tok", "tokens", "windows"):
        plain, odd = (tree(tmp_path / f"{results}-{name}") for name in ("plain", "odd"))
        assert set(plain) == set(odd)
        for name, data in plain.items():
            if name.endswith((".bin", ".idx", "tokenizer.json", ".parquet")):
                assert odd[name] == data, name

"""Every method of Storage, on every store."""

from __future__ import annotations

import concurrent.futures
import gzip
import os
import random
import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from stores import AZURE_USER, Store

from bpe_beam.errors import DataError
from bpe_beam.folders import receipts
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.folders.run_folder import remove_all_in
from bpe_beam.storage.create_exclusive import creates_only, write_once
from bpe_beam.storage.remote_file import BLOCK
from bpe_beam.storage.uploading import PART

pytestmark = pytest.mark.servers

STRANGE = (
    "a #1.txt",
    "part#1",
    "50%41.txt",
    "é ü.txt",
    "[x]*.txt",
    "a::b.txt",
    "wh?at.txt",
    "a+b&c=d.txt",
)
DATA = bytes(range(256)) * 40_000  # 10 MB: some ranges


def fill(store: Store, folder: str, *names: str) -> None:
    for name in names:
        store.storage.write_bytes(store.storage.join(folder, *name.split("/")), name.encode())


def test_what_is_written_is_read(store: Store) -> None:
    storage, folder = store.storage, store.folder()
    url = storage.join(folder, "sub", "file")
    assert not storage.exists(url)
    assert not storage.is_folder(folder)
    assert storage.list_names(folder) == []
    assert storage.expand(f"{folder}/**") == []
    storage.make_folder(storage.join(folder, "sub"))
    storage.write_bytes(url, b"one")
    first = storage.stat(url)
    storage.write_bytes(url, b"three")
    second = storage.stat(url)
    assert (first.size, second.size, storage.size(url)) == (3, 5, 5)
    assert storage.exists(url)
    assert storage.read_bytes(url) == b"three"
    assert storage.read_head(url, 2) == b"th"
    assert storage.read_head(url, 99) == b"three"
    for count, size in ((2, 5), (99, 5), (99, 6)):  # of a listing, which may be outdated
        assert storage.read_head(url, count, size) == b"three"[:count]
    assert storage.list_names(folder) == ["sub"]
    assert storage.list_names(storage.join(folder, "sub")) == ["file"]
    assert storage.is_folder(folder)
    assert not storage.is_folder(url)
    storage.remove_folder_if_empty(folder)
    assert storage.exists(url)
    storage.remove(url)
    storage.remove(url)
    storage.remove_folder_if_empty(folder)
    assert not storage.exists(url)
    assert storage.expand(url) == []


def test_a_tag_changes_with_the_content_and_is_listed_as_it_is_told(store: Store) -> None:
    storage, folder = store.storage, store.folder()
    url = storage.join(folder, "file")
    tags = []
    for content in (b"one", b"two"):
        storage.write_bytes(url, content)
        found = storage.stat(url)
        assert found.tag
        assert storage.stat(url) == found
        assert storage.expand(f"{folder}/f*") == [found]
        assert storage.expand(url) == [found]
        tags.append(found.tag)
    assert tags[0] != tags[1]


def test_an_empty_file(store: Store) -> None:
    storage, folder = store.storage, store.folder()
    url = storage.join(folder, "empty")
    storage.write_bytes(url, b"")
    assert storage.read_bytes(url) == b""
    assert storage.read_head(url, 10) == b""
    assert [found.size for found in storage.expand(f"{folder}/*")] == [0]


def test_large_files_are_read_in_parts(store: Store) -> None:
    storage, url = store.storage, f"{store.folder()}/large"
    with storage.create(url) as stream:
        for at in range(0, len(DATA), 700_001):
            stream.write(DATA[at : at + 700_001])
    assert storage.read_bytes(url) == DATA
    with storage.open(url) as stream:
        for start, count in ((0, 10), (BLOCK - 5, 10), (5, 3 * BLOCK), (len(DATA) - 3, 10)):
            assert stream.seek(start) == start
            assert stream.read(count) == DATA[start : start + count]
        assert stream.read(1) == b""
        assert stream.seek(-2, 2) == len(DATA) - 2
        assert stream.read() == DATA[-2:]
        assert stream.seek(len(DATA) + 9) == len(DATA) + 9
        assert stream.read(1) == b""


@pytest.mark.parametrize("size", [PART - 1, PART, PART + 1, 2 * PART])
def test_uploads_in_parts(store: Store, size: int) -> None:
    storage, url = store.storage, f"{store.folder()}/parts"
    data = (DATA * (2 * PART // len(DATA) + 1))[:size]
    with storage.create(url) as stream:
        stream.write(data)
    assert storage.size(url) == size
    assert storage.read_bytes(url) == data


@pytest.mark.parametrize("size", [10, 2 * PART + 5])
def test_nothing_appears_before_the_end_nor_after_an_error(store: Store, size: int) -> None:
    storage, folder = store.storage, store.folder()
    url = storage.join(folder, "file")
    with pytest.raises(KeyError), storage.create(url) as stream:
        stream.write(bytes(size))
        stream.flush()
        assert not storage.exists(url)
        assert storage.list_names(folder) == []
        raise KeyError
    assert storage.list_names(folder) == []
    storage.write_bytes(url, b"old")
    with pytest.raises(KeyError), storage.create(url) as stream:
        stream.write(bytes(size))
        raise KeyError
    assert storage.read_bytes(url) == b"old"
    assert storage.list_names(folder) == ["file"]


def test_attempts_at_one_file_do_not_meet(store: Store) -> None:
    storage, folder = store.storage, store.folder()
    url = storage.join(folder, "file")
    with ExitStack() as ended:
        if store.name == "azurite":
            # what one sends belongs to the file, and goes when another is completed
            ended.enter_context(pytest.raises(DataError, match="cannot write"))
        with storage.create(url) as first, storage.create(url) as second:
            first.write(b"same" * 5_000_000)
            second.write(b"same" * 5_000_000)
    assert storage.read_bytes(url) == b"same" * 5_000_000
    assert storage.list_names(folder) == ["file"]


@pytest.mark.parametrize("name", STRANGE)
def test_strange_names(store: Store, name: str) -> None:
    storage, folder = store.storage, f"{store.folder()}/in {name}"
    url = storage.join(folder, name)
    storage.write_bytes(url, b"text")
    assert storage.list_names(folder) == [name]
    assert storage.exists(url)
    assert storage.read_bytes(url) == b"text"
    assert storage.read_head(url, 2) == b"te"
    # the file that has this very name is meant, not what it would match as a glob
    storage.write_bytes(storage.join(folder, "x.txt"), b"other")
    assert [(found.url, found.size) for found in storage.expand(url)] == [(url, 4)]
    storage.remove(url)
    assert not storage.exists(url)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", ["a #1.txt", "b.txt"]),
        ("[!b]*.txt", ["a #1.txt"]),
        ("sub/*.txt", ["sub/a.txt"]),
        ("*/*.txt", ["sub/a.txt"]),
        ("**/*.txt", ["a #1.txt", "b.txt", "sub/a.txt", "sub/deep/er/a.txt"]),
        ("**/deep/**/a.txt", ["sub/deep/er/a.txt"]),
        ("sub/**", ["sub/a.txt", "sub/deep/er/a.txt"]),
        (".h*", [".hidden"]),
        ("sub", []),
        ("none/*", []),
    ],
)
def test_globs(store: Store, pattern: str, expected: list[str]) -> None:
    storage, folder = store.storage, f"{store.top}/globs"
    if not storage.exists(f"{folder}/b.txt"):
        files = ("a #1.txt", "c.json", ".hidden", "sub/a.txt", "sub/deep/er/a.txt", ".git/a.txt")
        fill(store, folder, *files, "b.txt")
    found = [each.url for each in storage.expand(f"{folder}/{pattern}")]
    assert found == [f"{folder}/{name}" for name in expected]


def put_azure(store: Store, url: str, data: bytes, **more: Any) -> None:
    """Puts a blob directly and adlfs."""
    from azure.storage.blob import BlobServiceClient

    container, _, name = url.removeprefix("az://").partition("/")
    told = store.options["az"]["connection_string"]
    with BlobServiceClient.from_connection_string(told) as service:
        service.get_blob_client(container, name).upload_blob(data, **more)


def test_markers_of_folders_are_no_files(store: Store) -> None:
    storage, folder = store.storage, store.folder()
    fill(store, folder, "sub/file")
    fs, path = storage.remote.connect(folder)
    bucket, _, key = path.partition("/")
    if store.name == "fake-gcs-server":
        fs.pipe_file(f"{path}/sub/", b"")
        fs.pipe_file(f"{path}/empty/", b"")
    elif store.name == "azurite":
        for name in ("sub", "empty"):
            put_azure(store, f"{folder}/{name}", b"", metadata={"hdi_isfolder": "true"})
    else:
        fs.call_s3("put_object", Bucket=bucket, Key=f"{key}/sub/", Body=b"")
        fs.call_s3("put_object", Bucket=bucket, Key=f"{key}/empty/", Body=b"")
    file = f"{folder}/sub/file"
    assert [found.url for found in storage.expand(f"{folder}/**")] == [file]
    assert [found.url for found in storage.expand(f"{folder}/*")] == []
    assert storage.list_names(f"{folder}/sub") == ["file"]
    assert storage.list_names(f"{folder}/empty") == []
    assert storage.is_folder(f"{folder}/sub")


def test_an_account_in_the_url_stays_there(start_store: Callable[[str], Store]) -> None:
    store = start_store("azurite")
    container = store.top.removeprefix("az://")
    top = f"abfss://{container}@{AZURE_USER}.dfs.core.windows.net/account"
    fill(store, f"{store.top}/account", "a.txt", "sub/b.txt")
    found = store.storage.expand(f"{top}/**/*.txt")
    assert [each.url for each in found] == [f"{top}/a.txt", f"{top}/sub/b.txt"]
    assert [store.storage.read_bytes(each.url) for each in found] == [b"a.txt", b"sub/b.txt"]
    assert store.storage.expand(f"{top}/a.txt") == [found[0]]
    assert store.storage.stat(found[0].url) == found[0]


def test_a_process_that_was_forked_reads_too(start_store: Callable[[str], Store]) -> None:
    store = start_store("versitygw")
    url = f"{store.folder()}/file"
    store.storage.write_bytes(url, b"text")
    child = os.fork()
    if child == 0:
        good = store.storage.read_bytes(url) == b"text"
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def put_encoded(store: Store, url: str, data: bytes) -> None:
    """Puts an object with the Content-Encoding gzip, directly."""
    fs, path = store.storage.remote.connect(url)
    bucket, _, key = path.partition("/")
    if store.name == "fake-gcs-server":
        fs.pipe_file(path, data, fixed_key_metadata={"content_encoding": "gzip"})
    elif store.name == "azurite":
        from azure.storage.blob import ContentSettings

        put_azure(store, url, data, content_settings=ContentSettings(content_encoding="gzip"))
    else:
        fs.call_s3("put_object", Bucket=bucket, Key=key, Body=data, ContentEncoding="gzip")


def test_content_encoding_gives_stored_bytes_or_an_error(store: Store) -> None:
    storage, url = store.storage, f"{store.folder()}/a.txt"
    data = gzip.compress(random.Random(1).randbytes(2_000_000))
    put_encoded(store, url, data)
    if store.name == "fake-gcs-server":
        for read in (storage.read_bytes, storage.open, lambda url: storage.read_head(url, 9)):
            with pytest.raises(DataError, match="its Content-Encoding is 'gzip'"):
                read(url)
    else:
        assert storage.read_bytes(url) == data
        assert storage.read_head(url, 9) == data[:9]
        assert storage.stat(url).size == len(data)


def test_over_a_thousand_files(store: Store) -> None:
    storage, folder = store.storage, store.folder()
    urls = [f"{folder}/many/{number:04}.txt" for number in range(1100)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda url: storage.write_bytes(url, b"x"), urls))
    assert [found.url for found in storage.expand(f"{folder}/**/*.txt")] == urls
    assert len(storage.list_names(f"{folder}/many")) == 1100


def test_many_files_are_looked_at_and_removed_together(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, "_MANY", 0)
    folder = TaskFolder(store.storage, store.folder(), "")
    names = ["a+b&c=d.txt", "wh?at.txt", "work/one", "work/two"]
    fill(store, folder.url, *names)
    files = [FileInfo.of(name, name.encode()) for name in names]
    other = [FileInfo("work/one", 1, "0" * 64), FileInfo("work/three", 1, "0" * 64)]
    assert folder.have_sizes([*files, *other]) == [True] * 4 + [False] * 2
    folder.remove([*names[:3], "work/three"])
    assert folder.have_sizes(files) == [False] * 3 + [True]
    fill(store, folder.url, *names[:2], ".hidden", "work/.c/.d")
    remove_all_in(store.storage, folder.url)
    assert store.storage.list_names(folder.url) == []


def test_errors_name_the_file(store: Store) -> None:
    storage = store.storage
    missing = f"{store.folder()}/missing"
    for call in (storage.size, storage.stat, storage.open, storage.read_bytes):
        with pytest.raises(DataError, match=rf"cannot read {re.escape(missing)}: No such file"):
            call(missing)
    elsewhere = f"{store.top}-that-is-not-there/file"
    with pytest.raises(DataError, match=rf"cannot write {re.escape(elsewhere)}: "):
        storage.write_bytes(elsewhere, b"x")
    assert storage.expand(f"{store.top}-that-is-not-there/*") == []
    assert not storage.exists(elsewhere)
    with pytest.raises(DataError, match="cannot read"):
        storage.read_bytes(elsewhere)


@pytest.mark.parametrize("size", [3, 40_000_000])
def test_a_move_replaces_and_may_be_repeated(store: Store, size: int) -> None:
    storage, folder = store.storage, store.folder()
    one, other = storage.join(folder, "one", "a #1"), storage.join(folder, "b c")
    for name in ("", "one"):
        storage.make_folder(storage.join(folder, name) if name else folder)
    data = random.Random(size).randbytes(size)
    storage.write_bytes(one, data)
    storage.write_bytes(other, b"old")
    storage.move(one, other)
    assert not storage.exists(one)
    assert storage.read_bytes(other) == data
    storage.move(one, other)
    assert storage.size(other) == size
    with pytest.raises(DataError, match="cannot move"):
        storage.move(storage.join(folder, "nothing"), storage.join(folder, "no target"))


def test_a_file_is_written_once(store: Store) -> None:
    """By the first; and of many at the same moment by one."""
    storage, folder = store.storage, store.folder()
    url = storage.join(folder, "x")
    assert write_once(storage, url, b"one")
    assert not write_once(storage, url, b"two")
    assert write_once(storage, url, b"one"), "again, after an answer that was lost"
    assert storage.read_bytes(url) == b"one"
    for turn in range(3):
        url = storage.join(folder, f"turn-{turn}")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            won = list(pool.map(lambda n, u=url: write_once(storage, u, b"%d" % n), range(4)))
        assert storage.read_bytes(url) == b"%d" % won.index(True)
        assert won.count(True) == 1


def test_whether_a_store_creates_only_is_known(store: Store) -> None:
    folder = store.folder()
    assert creates_only(store.storage, folder)
    assert store.storage.list_names(folder) == []


def test_a_store_that_ignores_conditions_is_found_out(start_store: Callable[[str], Store]) -> None:
    store = start_store("gofakes3")
    folder = store.folder()
    store.storage.write_bytes(f"{folder}/file", b"text")
    assert not creates_only(store.storage, folder)
    assert store.storage.list_names(folder) == ["file"]

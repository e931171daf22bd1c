"""Storage: the same behaviour on local disk and on a file system of fsspec's."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from stored_files import fill, listed

from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage, retry

pytestmark = pytest.mark.quick

STRANGE = "a #1 %41 b::c é[x]*?~.txt"


def names(storage: Storage, folder: str, pattern: str) -> list[str]:
    found = storage.expand(storage.join(folder, pattern))
    for each in found:
        assert storage.read_bytes(each.url) == each.url[-each.size :].encode()
        assert storage.stat(each.url) == each
    top = folder.partition("://")[2] or folder
    return [each.url.partition(top)[2].lstrip("/") for each in found]


def test_what_is_written_is_read(storage: Storage, folder: str) -> None:
    url = storage.join(folder, "sub", "file")
    assert not storage.exists(url)
    assert storage.list_names(storage.join(folder, "sub")) == []
    storage.make_folder(storage.join(folder, "sub"))
    storage.write_bytes(url, b"one")
    storage.write_bytes(url, b"three")
    assert storage.exists(url)
    assert storage.size(url) == 5
    assert storage.read_bytes(url) == b"three"
    assert storage.read_head(url, 2) == b"th"
    assert storage.read_head(url, 99) == b"three"
    with storage.open(url) as stream:
        stream.seek(2)
        assert stream.read() == b"ree"
    assert storage.list_names(storage.join(folder, "sub")) == ["file"]
    assert storage.list_names(folder) == ["sub"]
    assert storage.is_folder(folder)
    assert not storage.is_folder(url)
    storage.remove_folder_if_empty(storage.join(folder, "sub"))
    assert storage.exists(url)
    storage.remove(url)
    storage.remove(url)
    assert not storage.exists(url)
    storage.remove_folder_if_empty(storage.join(folder, "sub"))
    storage.remove_folder_if_empty(storage.join(folder, "sub"))
    assert storage.list_names(folder) == []


def test_strange_names(storage: Storage, folder: str) -> None:
    storage.make_folder(folder)
    url = storage.join(folder, STRANGE)
    storage.write_bytes(url, b"text")
    assert storage.list_names(folder) == [STRANGE]
    assert storage.read_bytes(url) == b"text"
    # the file that has this very name is meant, not what it would match as a glob
    storage.write_bytes(storage.join(folder, STRANGE.replace("[x]*?", "xyz")), b"other")
    assert [found.size for found in storage.expand(url)] == [4]


def test_what_is_opened_is_known(storage: Storage, folder: str) -> None:
    fill(storage, folder, "a", "bb")
    url = storage.join(folder, "bb")
    found, stream = storage.open_with_stat(url)
    with stream:
        assert found == storage.stat(url)
        assert found.tag
        assert stream.read() == b"bb"


def test_a_file_url_is_a_path(storage: Storage, tmp_path: Path) -> None:
    storage.write_bytes(f"file://{tmp_path}/a%20b", b"x")
    assert (tmp_path / "a%20b").read_bytes() == b"x"
    assert listed(storage, f"file://{tmp_path}/*") == [(str(tmp_path / "a%20b"), 1)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", ["a.txt", "b.txt"]),
        ("?.txt", ["a.txt", "b.txt"]),
        ("[!a].txt", ["b.txt"]),
        ("*", ["a.txt", "b.txt", "c.json"]),
        ("sub/*.txt", ["sub/a.txt"]),
        ("*/*.txt", ["sub/a.txt"]),
        ("**/*.txt", ["a.txt", "b.txt", "sub/a.txt", "sub/deep/er/a.txt"]),
        ("**/deep/**/a.txt", ["sub/deep/er/a.txt"]),
        ("sub/**", ["sub/a.txt", "sub/deep/er/a.txt"]),
        (".hidden", [".hidden"]),
        (".h*", [".hidden"]),
        ("a.txt", ["a.txt"]),
        ("sub", []),
        ("none", []),
        ("none/*", []),
        ("a.txt/*", []),
        ("*.none", []),
    ],
)
def test_globs(storage: Storage, folder: str, pattern: str, expected: list[str]) -> None:
    fill(storage, folder, "b.txt", "a.txt", "c.json", ".hidden", "sub/a.txt", "sub/deep/er/a.txt")
    fill(storage, folder, ".git/a.txt", "sub/.a.txt")
    assert names(storage, folder, pattern) == expected


def test_two_stars_within_a_name_are_refused(storage: Storage, folder: str) -> None:
    with pytest.raises(UsageError, match=r"'\*\*' must be a whole part of the path.*'a\*\*'"):
        storage.expand(storage.join(folder, "a**", "b"))


def test_a_name_that_is_not_utf8_is_refused(storage: Storage, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_bytes(b"")
    with pytest.raises(UsageError, match="must be UTF-8"):
        storage.expand(f"{tmp_path}/*")


def test_errors_name_the_path(storage: Storage, folder: str, tmp_path: Path) -> None:
    missing = storage.join(folder, "missing")
    for call in (storage.size, storage.open, storage.read_bytes):
        with pytest.raises(DataError, match=rf"cannot read {re.escape(missing)}: "):
            call(missing)
    with pytest.raises(DataError, match="cannot write"):
        storage.write_bytes(str(tmp_path / "no" / "folder"), b"")
    with pytest.raises(UsageError, match="null"):
        storage.size("a\0b")
    with pytest.raises(UsageError, match="protocol 'nonsense' is unknown"):
        storage.open("nonsense://a")


def test_options_reach_the_file_system_and_are_not_shown() -> None:
    storage = Storage({"memory": {"secret": "hunter2", "skip_instance_cache": True}})
    assert "hunter2" not in repr(storage)
    again = pickle.loads(pickle.dumps(storage))
    assert again == storage
    fs, _ = again.remote.connect("memory://x")
    assert fs.storage_options["secret"] == "hunter2"
    assert pickle.loads(pickle.dumps(again)) == storage, "also after it has connected"
    with pytest.raises(UsageError, match="'s3' is a str"):
        Storage({"s3": "http://"})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("method", "use"),
    [
        ("info", lambda storage, url: storage.stat(url)),
        ("info", lambda storage, url: storage.exists(url)),
        ("info", lambda storage, url: storage.is_folder(url)),
        ("info", lambda storage, url: storage.expand(url)),
        ("info", lambda storage, url: storage.read_head(url, 1)),
        ("info", lambda storage, url: storage.list_names(url.rpartition("/")[0])),
        ("rm_file", lambda storage, url: storage.remove(url)),
        ("makedirs", lambda storage, url: storage.make_folder(url + "-folder")),
    ],
)
def test_a_remote_call_is_repeated_after_an_error_that_may_pass(
    monkeypatch: pytest.MonkeyPatch, method: str, use: Callable[[Storage, str], object]
) -> None:
    storage, url = Storage(), "memory://repeated/file"
    failed: list[str] = []
    storage.write_bytes(url, b"x")
    real = getattr(MemoryFileSystem, method)

    def fail_once(*args: Any, **settings: Any) -> Any:
        if not failed:
            failed.append(method)
            raise ConnectionResetError
        return real(*args, **settings)

    monkeypatch.setattr(retry, "_FIRST_WAIT_SECONDS", 0)
    monkeypatch.setattr(MemoryFileSystem, method, fail_once)
    use(storage, url)
    assert failed

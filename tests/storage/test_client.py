"""Storage: the same behaviour on local disk and on a file system of fsspec's."""

from __future__ import annotations

import os
import pickle
import re
import stat
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import BinaryIO

import pytest

from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage, local_store, named_errors, redact

pytestmark = pytest.mark.quick

STRANGE = "a #1 %41 b::c é[x]*?~.txt"


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path)
    return f"memory://{uuid.uuid4().hex}/below"


@pytest.fixture
def storage() -> Storage:
    return Storage()


def fill(storage: Storage, folder: str, *names: str) -> None:
    for name in names:
        url = storage.join(folder, *name.split("/"))
        storage.make_folder(url.rpartition("/")[0])
        storage.write_bytes(url, name.encode())


def names(storage: Storage, folder: str, pattern: str) -> list[str]:
    found = storage.expand(storage.join(folder, pattern))
    for each in found:
        assert storage.read_bytes(each.url) == each.url[-each.size :].encode()
        assert storage.stat(each.url) == each
    top = folder.partition("://")[2] or folder
    return [each.url.partition(top)[2].lstrip("/") for each in found]


def facts(storage: Storage, pattern: str) -> list[tuple[str, int]]:
    return [(found.url, found.size) for found in storage.expand(pattern)]


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


def test_a_local_file_that_is_replaced_stays_the_one_that_was_opened(
    storage: Storage, tmp_path: Path
) -> None:
    url = str(tmp_path / "a")
    storage.write_bytes(url, b"one")
    before = storage.stat(url)
    found, stream = storage.open_with_stat(url)
    storage.write_bytes(url, b"three")
    with stream:
        assert stream.read() == b"one"
    assert found == before != storage.stat(url)


def test_a_file_url_is_a_path(storage: Storage, tmp_path: Path) -> None:
    storage.write_bytes(f"file://{tmp_path}/a%20b", b"x")
    assert (tmp_path / "a%20b").read_bytes() == b"x"
    assert facts(storage, f"file://{tmp_path}/*") == [(str(tmp_path / "a%20b"), 1)]


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


def test_local_globs_end_on_circles_and_know_links(storage: Storage, tmp_path: Path) -> None:
    fill(storage, str(tmp_path), "a/b/file")
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path / "a")
    (tmp_path / "linked").symlink_to(tmp_path / "a" / "b" / "file")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    found = [url for url, _ in facts(storage, f"{tmp_path}/**")]
    assert found == [str(tmp_path / "a" / "b" / "file"), str(tmp_path / "linked")]
    assert storage.expand(str(tmp_path / "pipe")) == []
    # a folder that is named may be a link, and ".." is what stands above its target
    fill(storage, str(tmp_path), "other/deep/x", "other/y")
    (tmp_path / "way").symlink_to(tmp_path / "other" / "deep")
    assert facts(storage, f"{tmp_path}/way/*") == [
        (str(tmp_path / "way" / "x"), len("other/deep/x"))
    ]
    assert facts(storage, f"{tmp_path}/way/../y") == [
        (str(tmp_path / "other" / "y"), len("other/y"))
    ]


def test_relative_and_doubled_paths_mean_the_same_file(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(storage, ".", "data/x")
    expected = [(str(tmp_path / "data" / "x"), 6)]
    for path in ("data/x", "./data//x", f"/{tmp_path}/data/x", "data/../data/x", "data/[x]"):
        assert facts(storage, path) == expected


def test_a_name_that_is_not_utf8_is_refused(storage: Storage, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_bytes(b"")
    with pytest.raises(UsageError, match="must be UTF-8"):
        storage.expand(f"{tmp_path}/*")


def test_nothing_appears_before_the_end_nor_after_an_error(storage: Storage, folder: str) -> None:
    storage.make_folder(folder)
    url = storage.join(folder, "file")
    with pytest.raises(KeyError), storage.create(url) as stream:
        stream.write(b"x" * 3_000_000)
        (attempt,) = storage.list_names(folder) or ["file.attempt-0123456789ab"]
        assert re.fullmatch(r"file\.attempt-[0-9a-f]{12}", attempt)
        raise KeyError
    assert storage.list_names(folder) == []
    storage.write_bytes(url, b"old")
    with pytest.raises(KeyError), storage.create(url) as stream:
        stream.write(b"new")
        raise KeyError
    assert storage.read_bytes(url) == b"old"
    assert storage.list_names(folder) == ["file"]


def test_attempts_at_one_file_do_not_meet(storage: Storage, folder: str) -> None:
    storage.make_folder(folder)
    url = storage.join(folder, "[shard]-0")
    with storage.create(url) as first, storage.create(url) as second:
        first.write(b"same")
        second.write(b"same")
    assert storage.read_bytes(url) == b"same"
    assert storage.list_names(folder) == ["[shard]-0"]


def test_a_twin_in_another_thread(storage: Storage, tmp_path: Path) -> None:
    url = str(tmp_path / "file")
    data = os.urandom(1_000_000)

    def write() -> None:
        for _ in range(20):
            storage.write_bytes(url, data)

    twins = [threading.Thread(target=write) for _ in range(2)]
    storage.write_bytes(url, data)
    for twin in twins:
        twin.start()
    while any(twin.is_alive() for twin in twins):
        assert storage.read_bytes(url) == data
    assert storage.list_names(str(tmp_path)) == ["file"]


def test_a_full_disk_names_the_file(storage: Storage, tmp_path: Path) -> None:
    # a limit on the size of files fails like a full disk does, and needs no rights
    code = f"""
import resource, signal, sys
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with Storage().create({str(tmp_path / "big")!r}) as stream:
        for _ in range(100):
            stream.write(bytes(50_000))
except DataError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout == f"cannot write {tmp_path / 'big'}: File too large\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_no_space_left(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_on_a_full_disk(attempt: Path) -> BinaryIO:
        attempt.write_bytes(b"")
        return Path("/dev/full").open("wb", buffering=0)

    monkeypatch.setattr(local_store, "open_new", open_on_a_full_disk)
    url = str(tmp_path / "file")
    for count in (10, 5_000_000):  # fails at the end; at once
        with pytest.raises(DataError, match=rf"cannot write {url}: No space left on device"):
            storage.write_bytes(url, bytes(count))
        assert list(tmp_path.iterdir()) == []


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


def test_join() -> None:
    join = Storage().join
    assert join("a", "b", "c") == "a/b/c"
    assert join("/", "a") == "/a"
    assert join("s3://", "bucket", "key") == "s3://bucket/key"
    assert join("s3://bucket/", "key") == "s3://bucket/key"
    assert join("", "a") == "a"
    assert join("a?b", "c") == "a?b/c"
    assert join("https://host/a?sig=1", "c") == "https://host/a/c?sig=1"


def test_redact() -> None:
    assert redact("https://me:pw@host/a/b?sig=1") == "https://host/a/b"
    assert redact("https://token@host/a") == "https://host/a"
    assert redact("s3://key:secret@bucket/a?b") == "s3://bucket/a?b"
    assert redact("abfss://container@account/a") == "abfss://container@account/a"
    assert redact("/a/me:pw@host?x") == "/a/me:pw@host?x"
    url = "https://me:hunter2@127.0.0.1:1/x?sig=hunter2"
    for error in (RuntimeError, OSError):
        with (
            pytest.raises(DataError, match=r"cannot read https://127") as caught,
            named_errors("read", url),
        ):
            raise error(f"{url} does not answer")
        assert "hunter2" not in str(caught.value)


def test_a_move_replaces_and_may_be_repeated(tmp_path: Path) -> None:
    storage = Storage()
    one, other = str(tmp_path / "one [1]*"), str(tmp_path / "other #2")
    storage.write_bytes(one, b"new")
    storage.write_bytes(other, b"old")
    storage.move(one, other)
    assert not storage.exists(one)
    assert storage.read_bytes(other) == b"new"
    storage.move(one, other)
    assert storage.read_bytes(other) == b"new"
    with pytest.raises(DataError, match=r"cannot move .*nothing"):
        storage.move(str(tmp_path / "nothing"), str(tmp_path / "no target"))


class TestOutlets:
    """What is no file to be replaced: devices, pipes, what a process has open."""

    def test_a_device_stays_a_device(self, tmp_path: Path) -> None:
        null = tmp_path / "null"
        try:
            os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            null.write_bytes(b"")
        except OSError:  # not root, or a file system without devices: the real one withstands us
            null = Path("/dev/null")
            assert not os.access("/dev", os.W_OK)
        Storage().write_bytes(str(null), b"gone")
        assert stat.S_ISCHR(null.stat().st_mode)

    def test_a_full_device_is_named(self) -> None:
        with pytest.raises(DataError, match="cannot write /dev/full: No space left"):
            Storage().write_bytes("/dev/full", b"x")
        assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)

    def test_a_pipe_gets_the_bytes(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        got: list[bytes] = []
        reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
        reader.start()
        Storage().write_bytes(str(pipe), b"some bytes")
        reader.join()
        assert got == [b"some bytes"]
        assert [path.name for path in tmp_path.iterdir()] == ["pipe"]

    def test_what_is_open_is_written_behind(self, tmp_path: Path) -> None:
        with (tmp_path / "file").open("wb") as file:
            file.write(b"before ")
            file.flush()
            Storage().write_bytes(f"/dev/fd/{file.fileno()}", b"and after")
        assert (tmp_path / "file").read_bytes() == b"before and after"
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

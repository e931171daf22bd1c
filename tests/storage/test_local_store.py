"""What is particular to paths of this machine."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import BinaryIO

import pytest
from stored_files import fill, listed

from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage, local_store

pytestmark = pytest.mark.quick


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


def test_a_new_folder_survives_a_power_cut_unless_the_caller_sees_to_it(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(local_store, "sync_folder", lambda path: synced.append(path.name))
    storage.make_folder(str(tmp_path / "a" / "b"))
    assert synced == ["a", tmp_path.name]
    storage.make_folder(str(tmp_path / "c" / "d"), synced=False)
    assert synced == ["a", tmp_path.name]
    assert (tmp_path / "c" / "d").is_dir()


@pytest.mark.parametrize("below", ["", "/x"])
def test_a_folder_is_not_made_through_a_link_to_nothing(
    storage: Storage, tmp_path: Path, below: str
) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(UsageError, match="link is a link to nowhere: No such file"):
        storage.make_folder(f"{tmp_path}/link{below}")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises((UsageError, DataError), match="Too many levels of symbolic links"):
        storage.make_folder(f"{tmp_path}/loop{below}")


def test_local_globs_end_on_circles_and_know_links(storage: Storage, tmp_path: Path) -> None:
    fill(storage, str(tmp_path), "a/b/file")
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path / "a")
    (tmp_path / "linked").symlink_to(tmp_path / "a" / "b" / "file")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    found = [url for url, _ in listed(storage, f"{tmp_path}/**")]
    assert found == [str(tmp_path / "a" / "b" / "file"), str(tmp_path / "linked")]
    assert storage.expand(str(tmp_path / "pipe")) == []
    # a folder that is named may be a link, and ".." is the parent of its target
    fill(storage, str(tmp_path), "other/deep/x", "other/y")
    (tmp_path / "way").symlink_to(tmp_path / "other" / "deep")
    assert listed(storage, f"{tmp_path}/way/*") == [
        (str(tmp_path / "way" / "x"), len("other/deep/x"))
    ]
    assert listed(storage, f"{tmp_path}/way/../y") == [
        (str(tmp_path / "other" / "y"), len("other/y"))
    ]


def test_relative_and_doubled_paths_mean_the_same_file(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(storage, ".", "data/x")
    expected = [(str(tmp_path / "data" / "x"), 6)]
    for path in ("data/x", "./data//x", f"/{tmp_path}/data/x", "data/../data/x", "data/[x]"):
        assert listed(storage, path) == expected


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

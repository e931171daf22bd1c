"""Files that only one writer can create."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFile

from bpe_beam.storage import Storage, create_exclusive, writing
from bpe_beam.storage.create_exclusive import write_once
from bpe_beam.storage.names import attempted_name

STORAGE = Storage()


def test_a_file_is_written_once(tmp_path: Path) -> None:
    for folder in (str(tmp_path), "memory://once"):
        url = STORAGE.join(folder, "x")
        assert write_once(STORAGE, url, b"one")
        assert not write_once(STORAGE, url, b"two")
        assert write_once(STORAGE, url, b"one"), "again, after an answer that was lost"
        assert STORAGE.read_bytes(url) == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_an_attempt_is_named_after_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs and watchers know by these names whose attempts they may remove."""
    opened: list[str] = []
    link = os.link

    def kept(source: Path, target: Path) -> None:
        opened.extend(path.name for path in tmp_path.iterdir())
        link(source, target)

    monkeypatch.setattr(os, "link", kept)
    sync = writing.sync_file

    def synced(descriptor: int) -> None:
        opened.extend(path.name for path in tmp_path.iterdir())
        sync(descriptor)

    monkeypatch.setattr(create_exclusive, "sync_file", synced)
    assert write_once(STORAGE, str(tmp_path / "x"), b"one")
    assert len(opened) >= 2
    assert {attempted_name(name) for name in opened} == {"x"}


def test_of_many_writers_one_succeeds(tmp_path: Path) -> None:
    for turn in range(20):
        url = str(tmp_path / str(turn))
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda n, u=url: write_once(STORAGE, u, b"%d" % n), range(8)))
        assert won.count(True) == 1
        assert Path(url).read_bytes() == b"%d" % won.index(True)


class _Killed(BaseException):
    pass


def test_a_file_that_is_written_once_is_never_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of a write, on a store that writes in place."""

    def half(self: MemoryFile, data: Any) -> None:
        io.BytesIO.write(self, data[:2])
        raise _Killed

    url = "memory://torn/window.json"
    with monkeypatch.context() as patch:
        patch.setattr(MemoryFile, "write", half)
        with pytest.raises(_Killed):
            write_once(STORAGE, url, b"data")
    assert not STORAGE.exists(url)
    assert write_once(STORAGE, url, b"data")
    assert not write_once(STORAGE, url, b"other")
    assert STORAGE.list_names("memory://torn") == ["window.json"]

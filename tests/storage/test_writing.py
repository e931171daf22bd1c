"""New files: complete or absent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick


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

"""Locks of folders: one run at a time, and none that outlives its process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from bpe_beam.errors import DataError
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.folder_lock import lock_folder
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.storage import Storage

_HOLD = """
import sys
from bpe_beam.folders.folder_lock import lock_folder
from bpe_beam.storage import Storage
lock = lock_folder(Storage(), sys.argv[1])
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_run(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that has the lock of a folder."""
    command = [sys.executable, "-c", _HOLD, str(folder)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def claim(folder: Path, overwrite: bool = False) -> OutputFolder:
    return claim_folder(Storage(), str(folder), {"job": "count"}, ["a.bin"], overwrite)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_of_another_run_is_refused_and_free_once_it_is_killed(
    tmp_path: Path, overwrite: bool
) -> None:
    with another_run(tmp_path / "out") as process:
        with pytest.raises(DataError, match=r"^another run works in .*out; when it has ended, run"):
            claim(tmp_path / "out", overwrite)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert claim(tmp_path / "out", overwrite).finished is False


def test_a_folder_is_locked_by_whatever_name(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    with another_run(tmp_path / "out"):
        for name in ("link", "out/../out"):
            with pytest.raises(DataError, match="another run works in"):
                claim(tmp_path / name)


def test_a_job_of_another_thread_is_another_run(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        first: Future[OutputFolder] = pool.submit(claim, tmp_path)
        first.result()
        with pytest.raises(DataError, match="another run works in"):
            claim(tmp_path)
    assert not claim(tmp_path).finished  # the thread has ended, though the folder is referred to


def test_a_thread_has_one_job(tmp_path: Path) -> None:
    first = claim(tmp_path)  # failed, and an error refers to it
    assert claim(tmp_path).record == first.record


def test_a_lock_without_references_is_free(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(claim, tmp_path).result()
        claim(tmp_path)


def test_stores_have_no_locks() -> None:
    assert lock_folder(Storage(), "memory://bucket/out") is None

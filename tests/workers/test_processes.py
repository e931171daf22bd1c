"""Worker processes: calls, reports, errors, and the death of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from called_elsewhere import kill_oneself, raise_, raise_unpicklable, reporting
from waiting import wait_until

from bpe_beam.errors import DataError
from bpe_beam.progress import Progress
from bpe_beam.workers.processes import WorkerProcesses

pytestmark = pytest.mark.quick


@pytest.fixture
def pool() -> Iterator[WorkerProcesses]:
    with WorkerProcesses(2) as pool:
        yield pool


def test_calls_are_made_elsewhere(pool: WorkerProcesses) -> None:
    with ThreadPoolExecutor(2) as threads:
        pids = set(threads.map(lambda _: pool.call(os.getpid), range(20)))
    assert 1 <= len(pids) <= 2
    assert os.getpid() not in pids


def test_errors_come_back_as_they_are(pool: WorkerProcesses) -> None:
    with pytest.raises(ZeroDivisionError):
        pool.call(divmod, 1, 0)
    with pytest.raises(ConnectionResetError):
        pool.call(raise_, ConnectionResetError("a store"))
    with pytest.raises(RuntimeError, match="Unpicklable: no way"):
        pool.call(raise_unpicklable)
    assert pool.call(divmod, 7, 2) == (3, 1)


def test_reports_arrive(pool: WorkerProcesses) -> None:
    with Progress("none").stage("work", 4, "splits") as stage:
        pool.call(reporting, "work")
        pool.call(reporting, "work")
        snapshot = stage.snapshot()
    assert (snapshot.done, snapshot.counters) == (4, {"bytes": 20})


def test_a_death_is_an_error_at_once(pool: WorkerProcesses) -> None:
    pid = pool.call(os.getpid)
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(DataError, match=rf"worker process \({pid}\) died by signal 9.*workers"):
        pool.call(time.sleep, 600)


def test_one_that_ends_by_itself(pool: WorkerProcesses) -> None:
    with pytest.raises(DataError, match="died with exit code 3"):
        pool.call(os._exit, 3)


def test_all_are_gone_at_the_end() -> None:
    with ThreadPoolExecutor(1) as thread:
        with WorkerProcesses(1) as pool:
            pid = pool.call(os.getpid)
            waiting = thread.submit(pool.call, time.sleep, 300)
            time.sleep(0.1)
        with pytest.raises(DataError, match="the job has ended"):
            waiting.result()
        with pytest.raises(DataError, match="the job has ended"):
            pool.call(os.getpid)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_death_of_one_ends_the_calls_of_all(pool: WorkerProcesses) -> None:
    with ThreadPoolExecutor(2) as threads:
        long = threads.submit(pool.call, time.sleep, 300)
        time.sleep(0.1)
        with pytest.raises(DataError, match="died by signal 9") as dead:
            pool.call(kill_oneself)
        with pytest.raises(DataError) as other:
            long.result(timeout=120)
    assert str(other.value) == str(dead.value)
    with pytest.raises(DataError, match="died by signal 9"):
        pool.call(os.getpid)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's way to end with a parent")
def test_a_process_ends_with_its_killed_caller(tmp_path: Path) -> None:
    """Also while it is busy with what never looks up."""
    script = f"""
import os, pathlib, signal, threading, time
from bpe_beam.workers.processes import WorkerProcesses
with WorkerProcesses(1) as pool:
    pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(pool.call(os.getpid)))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
    pool.call(time.sleep, 600)
"""
    subprocess.run([sys.executable, "-c", script], check=False, timeout=600)
    pid = int((tmp_path / "pid").read_text())

    def gone() -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        return state == "Z"  # nobody waits for it here

    wait_until(gone, "the process to end")

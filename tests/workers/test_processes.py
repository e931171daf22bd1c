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
from bpe_beam.workers import processes
from bpe_beam.workers.processes import call, worker_processes

pytestmark = pytest.mark.quick


@pytest.fixture
def pool() -> Iterator[str]:
    with worker_processes(2) as name:
        yield name


def test_calls_are_made_elsewhere(pool: str) -> None:
    with ThreadPoolExecutor(2) as threads:
        pids = set(threads.map(lambda _: call(pool, os.getpid), range(20)))
    assert 1 <= len(pids) <= 2
    assert os.getpid() not in pids


def test_without_processes_calls_are_made_here(pool: str) -> None:
    assert call(None, os.getpid) == os.getpid()
    assert call("of another process", os.getpid) == os.getpid()


def test_errors_come_back_as_they_are(pool: str) -> None:
    with pytest.raises(ZeroDivisionError):
        call(pool, divmod, 1, 0)
    with pytest.raises(ConnectionResetError):
        call(pool, raise_, ConnectionResetError("a store"))
    with pytest.raises(RuntimeError, match="Unpicklable: no way"):
        call(pool, raise_unpicklable)
    assert call(pool, divmod, 7, 2) == (3, 1)


def test_reports_arrive(pool: str) -> None:
    with Progress(quiet=True).stage("work", 4, "splits") as stage:
        call(pool, reporting, "work")
        call(pool, reporting, "work")
        snapshot = stage.snapshot()
    assert (snapshot.done, snapshot.counters) == (4, {"bytes": 20})


def test_a_death_is_an_error_at_once(pool: str) -> None:
    pid = call(pool, os.getpid)
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(DataError, match=rf"worker process \({pid}\) died by signal 9.*--workers"):
        call(pool, time.sleep, 600)


def test_one_that_ends_by_itself(pool: str) -> None:
    with pytest.raises(DataError, match="died with exit code 3"):
        call(pool, os._exit, 3)


def test_all_are_gone_at_the_end() -> None:
    with ThreadPoolExecutor(1) as thread:
        with worker_processes(1) as pool:
            pid = call(pool, os.getpid)
            waiting = thread.submit(call, pool, time.sleep, 300)
            time.sleep(0.1)
        with pytest.raises(DataError, match="the job has ended"):
            waiting.result()
        with pytest.raises(DataError, match="the job has ended"):
            call(pool, os.getpid)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not processes._pools


def test_the_death_of_one_ends_the_calls_of_all(pool: str) -> None:
    """Beam asks for the results of its threads one after another."""
    with ThreadPoolExecutor(2) as threads:
        long = threads.submit(call, pool, time.sleep, 300)
        time.sleep(0.1)
        with pytest.raises(DataError, match="died by signal 9") as dead:
            call(pool, kill_oneself)
        with pytest.raises(DataError) as other:
            long.result(timeout=120)
    assert str(other.value) == str(dead.value)
    with pytest.raises(DataError, match="died by signal 9"):
        call(pool, os.getpid)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's way to end with a parent")
def test_a_process_ends_with_its_killed_caller(tmp_path: Path) -> None:
    """Also while it is busy with what never looks up."""
    script = f"""
import os, pathlib, signal, threading, time
from bpe_beam.workers.processes import call, worker_processes
with worker_processes(1) as pool:
    pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(call(pool, os.getpid)))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
    call(pool, time.sleep, 600)
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

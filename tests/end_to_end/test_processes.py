"""Jobs in worker processes: the same bytes as in threads, and no hang when a process dies."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import pytest
from command_line import run, run_whole
from made_text import documents, write
from read_back import tree
from waiting import wait_until

from bpe_beam.workers import processes

OWN_PATTERN = r"regex:\w+|[^\w\s]+|\s+"
PROCESSES = ("--workers", "2")
HERE = ("--workers", "1")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The worker processes that the test's jobs have started."""
    begin = processes._Worker.__init__
    found: list[int] = []

    def noting(worker: processes._Worker) -> None:
        begin(worker)
        found.append(worker._process.pid)

    monkeypatch.setattr(processes._Worker, "__init__", noting)
    return found


def alive(started: list[int]) -> list[int]:
    return [process for process in started if Path(f"/proc/{process}").exists()]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus and a tokenizer with a pattern that only worker processes run side by side."""
    folder = tmp_path_factory.mktemp("trained")
    corpus = write(folder / "a.txt", documents(3000))
    own = ("--input", corpus, "--pretokenizer", OWN_PATTERN, *HERE)
    run_whole("train", *own, "--vocab-size", "400", "--output", folder / "tok")
    return folder


@pytest.fixture
def place(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a copy of these."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return tmp_path


def arguments(job: str) -> tuple[str, ...]:
    more = {
        "count": ("--pretokenizer", OWN_PATTERN),
        "tokenize": ("--tokenizer", "tok/tokenizer.json"),
    }
    return (job, "--input", "a.txt", "--range-bytes", "10KB", *more[job], "--output")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("job", ["count", "tokenize"])
def test_patterns_of_ones_own_run_in_processes(job: str, place: Path, started: list[int]) -> None:
    run_whole(*arguments(job), "out", *PROCESSES)
    assert len(started) == 2
    assert not alive(started)
    run_whole(*arguments(job), "here", *HERE)
    assert len(started) == 2
    assert tree(place / "out") == tree(place / "here")


def test_scanners_run_in_threads(place: Path, started: list[int]) -> None:
    count = ("count", "--input", "a.txt", "--range-bytes", "10KB", "--output")
    run_whole(*count, "threads", *PROCESSES)
    assert not started


@pytest.mark.parametrize("job", ["count", pytest.param("tokenize", marks=pytest.mark.slow)])
def test_a_worker_process_that_is_killed_ends_the_job(
    job: str, place: Path, started: list[int]
) -> None:
    def kill() -> None:
        wait_until(lambda: [*place.glob("out/work/run-*/work/*.json")], "the first receipt")
        os.kill(started[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    ran = run(*arguments(job), "out", *PROCESSES)
    killer.join()
    assert ran.code == 1
    assert ran.message.startswith(f"bpe-beam {job}: a worker process (")
    assert "died by signal 9" in ran.message
    assert not alive(started)
    assert not (place / "out" / "__manifest").exists()
    run_whole(*arguments(job), "out", *HERE)
    run_whole(*arguments(job), "fresh", *HERE)
    assert tree(place / "out") == tree(place / "fresh")


@pytest.mark.parametrize("mode", [PROCESSES, HERE])
def test_measures_and_errors_come_back_from_processes(mode: tuple[str, ...], place: Path) -> None:
    summary = run_whole(*arguments("count"), "out", *mode).summary
    assert summary["counters"]["documents_read"] == summary["documents"] == 3000
    assert summary["distributions"]["split_documents"]["sum"] == 3000
    (place / "a.txt").write_bytes(b"good\n\xff\n" * 1000)
    ran = run(*arguments("count"), "bad", *mode)
    assert ran.code == 1
    assert "invalid UTF-8" in ran.message


@pytest.mark.slow
def test_shards_are_compared_in_processes(place: Path, started: list[int]) -> None:
    run_whole(*arguments("tokenize"), "out", *HERE)
    verify = ("verify", "out", "--full", "--input", "a.txt", *PROCESSES)
    assert run(*verify).code == 0
    assert len(started) == 2
    text = (place / "a.txt").read_text()
    (place / "a.txt").write_text(text.replace("the", "THE", 1))
    assert run(*verify).code == 1
    assert len(started) == 4
    assert not alive(started)

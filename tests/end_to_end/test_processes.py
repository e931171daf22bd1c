"""Jobs in worker processes: the same bytes as in threads, and no hang when a process dies."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import run_process, run_whole
from made_text import documents, write
from read_back import tree

OWN_PATTERN = r"regex:\w+|[^\w\s]+|\s+"
PROCESSES = ("--workers", "2")
HERE = ("--workers", "1")

# Runs a job and says on stderr how many worker processes there were; kills one of them if told.
WATCHING = """
import glob, json, os, signal, sys, threading, time
from bpe_beam.cli import main as cli
from bpe_beam.workers import processes

kill, *arguments = sys.argv[1:]
started = []
begin = processes._Worker.__init__

def noting(worker):
    begin(worker)
    started.append(worker._process.pid)

def killer():
    while not glob.glob("out/work/run-*/work/*.json"):
        time.sleep(0.005)
    os.kill(started[0], signal.SIGKILL)

processes._Worker.__init__ = noting
if kill == "kill":
    threading.Thread(target=killer, daemon=True).start()
code = cli.main(arguments)
alive = [pid for pid in started if os.path.exists(f"/proc/{pid}")]
print(json.dumps({"started": len(started), "alive": len(alive)}), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.txt", documents(3000))
    own = ("--input", "a.txt", "--pretokenizer", OWN_PATTERN, "--quiet")
    run_whole("train", *own, "--vocab-size", "400", "--output", "tok")
    return tmp_path


def arguments(job: str) -> tuple[str, ...]:
    more = {
        "count": ("--pretokenizer", OWN_PATTERN),
        "tokenize": ("--tokenizer", "tok/tokenizer.json"),
    }
    return (job, "--input", "a.txt", "--range-bytes", "10KB", *more[job], "--output")


def watched(*args: str, kill: bool = False) -> tuple[int, str, dict[str, int]]:
    """Exit code, the message before the last line of stderr, and what that line tells."""
    command = (sys.executable, "-c", WATCHING, "kill" if kill else "")
    ran = run_process(*args, command=command)
    *lines, last = ran.err.splitlines()
    return ran.code, lines[-1] if lines else "", json.loads(last)


@pytest.mark.parametrize("job", ["count", "tokenize"])
def test_patterns_of_ones_own_run_in_processes(job: str, place: Path) -> None:
    code, _, processes = watched(*arguments(job), "out", "--workers", "2")
    assert (code, processes) == (0, {"started": 2, "alive": 0})
    code, _, processes = watched(*arguments(job), "here", *HERE)
    assert (code, processes) == (0, {"started": 0, "alive": 0})
    assert tree(place / "out") == tree(place / "here")


def test_scanners_run_in_threads(place: Path) -> None:
    count = ("count", "--input", "a.txt", "--range-bytes", "10KB", "--output")
    assert watched(*count, "threads", "--workers", "2")[2]["started"] == 0


@pytest.mark.parametrize("job", ["count", "tokenize"])
def test_a_worker_process_that_is_killed_ends_the_job(job: str, place: Path) -> None:
    code, message, processes = watched(*arguments(job), "out", "--workers", "2", kill=True)
    assert code == 1
    assert message.startswith(f"bpe-beam {job}: a worker process (")
    assert "died by signal 9" in message
    assert processes["alive"] == 0
    assert not (place / "out" / "manifest.json").exists()
    run_whole(*arguments(job), "out")
    run_whole(*arguments(job), "fresh")
    assert tree(place / "out") == tree(place / "fresh")


@pytest.mark.parametrize("mode", [PROCESSES, HERE])
def test_measures_and_errors_come_back_from_processes(mode: tuple[str, ...], place: Path) -> None:
    summary = run_whole(*arguments("count"), "out", *mode).summary
    assert summary["counters"]["documents_read"] == summary["documents"] == 3000
    assert summary["distributions"]["split_documents"]["sum"] == 3000
    (place / "a.txt").write_bytes(b"good\n\xff\n" * 1000)
    ran = run_process(*arguments("count"), "bad", *mode)
    assert ran.code == 1
    assert "invalid UTF-8" in ran.message


def test_shards_are_compared_in_processes(place: Path) -> None:
    run_whole(*arguments("tokenize"), "out")
    verify = ("verify", "out", "--full", "--input", "a.txt", "--workers", "2")
    code, _, processes = watched(*verify)
    assert (code, processes) == (0, {"started": 2, "alive": 0})
    text = (place / "a.txt").read_text()
    (place / "a.txt").write_text(text.replace("the", "THE", 1))
    code, _, _ = watched(*verify)
    assert code == 1

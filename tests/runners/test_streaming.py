"""The streaming job in real time on Prism and Flink: files come, it is killed, it goes on."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import ROOT, Ran, environment, run, run_whole
from engines import Cluster, Engine, alive, children
from made_text import documents, write
from read_back import read_shards
from waiting import SECONDS, wait_until

pytestmark = pytest.mark.runners

END = "<|endoftext|>"
# CI ends a stream on Prism, and interrupts jobs on a cluster of Flink.
PRISM_FIRST = [
    "prism",
    *(pytest.param(name, marks=pytest.mark.scheduled) for name in ("flink", "cluster")),
]
LAUNCHER = (sys.executable, str(ROOT / "pipelines" / "stream_tokenize.py"))


class Streaming:
    """A folder of files, and the job that watches it."""

    def __init__(self, folder: Path, flags: tuple[str, ...]) -> None:
        self.folder = folder
        self.out = folder / "out"
        self.texts: dict[str, list[str]] = {}
        (folder / "in").mkdir()
        first = write(folder / "first.jsonl", documents(100))
        size = ("--vocab-size", "400", "--special-token", END)
        run_whole("train", "--input", first, *size, "--output", folder / "tok")
        tokenizer = ("--tokenizer", folder / "tok" / "tokenizer.json", "--append", END)
        watching = ("--input", folder / "in" / "**" / "*.jsonl", "--range-bytes", "1KB")
        times = ("--poll-seconds", "1", "--window-seconds", "1", "--summary-file", "-")
        arguments = (*flags, *tokenizer, *watching, *times, "--output", self.out)
        self.command = (*LAUNCHER, *map(str, arguments))

    def put(self, name: str, count: int) -> None:
        """A new file."""
        texts = documents(count, seed=len(self.texts) + 10)
        self.texts[name] = texts
        write(self.folder / "in" / name, texts)

    @contextlib.contextmanager
    def running(self, *extra: str) -> Iterator[subprocess.Popen[bytes]]:
        """The job, with all that it starts in a session of its own, which ends with the block."""
        with (
            (self.folder / "err").open("ab") as err,
            subprocess.Popen(
                [*self.command, *extra],
                stdout=subprocess.PIPE,
                stderr=err,
                env=environment(),
                start_new_session=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def wait(self, process: subprocess.Popen[bytes], until: Callable[[], bool]) -> None:
        """Wait until something is so, or the job has ended without it."""
        reached = False

        def look() -> bool:
            nonlocal reached
            reached = until()
            return reached or process.poll() is not None

        wait_until(look, "the stream", pause=0.01)
        # It may have done it, and ended, since the last look.
        assert reached or until(), self.said()

    def said(self) -> str:
        return (self.folder / "err").read_text()

    def windows(self, finished: bool = True) -> list[Path]:
        """Those that are finished, or those that are not."""
        found = sorted(self.out.glob("window-*/__window"))
        return [p.parent for p in found if (p.parent / "__manifest").exists() == finished]

    def in_a_window(self) -> bool:
        """Whether one is begun and not finished."""
        with contextlib.suppress(FileNotFoundError):  # a folder went while it was looked at
            return any([*window.glob("work/*.json")] for window in self.windows(finished=False))
        return False

    def files(self) -> list[str]:
        """The files of all finished windows."""
        manifests = [json.loads((w / "__manifest").read_bytes()) for w in self.windows()]
        return sorted(file["name"] for each in manifests for file in each["plan"]["files"])


def test_each_file_once_though_it_is_killed(tmp_path: Path, streaming_engine: Engine) -> None:
    stream = Streaming(tmp_path, streaming_engine.flags)
    stream.put("a.jsonl", 30)
    stream.put("deep/b.jsonl", 30)
    with stream.running() as process:
        stream.wait(process, lambda: len(stream.windows()) == 1)
        stream.put("c.jsonl", 4_000)
        stream.wait(process, stream.in_a_window)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert len(stream.windows(finished=False)) == 1, "it was killed in the middle of a window"
    stream.put("d.jsonl", 50)
    with stream.running("--until-idle-seconds", "20") as process:
        stream.wait(process, lambda: len(stream.windows()) > 1)
        stream.put("e.jsonl", 40)
        stream.wait(process, lambda: len(stream.files()) == 5)
        out, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, stream.said()
    summary = Ran(0, out, "").summary
    assert summary["windows"] + summary["windows_finished_before"] == len(stream.windows())
    assert summary["files"] == 3
    assert stream.windows(finished=False) == []
    assert stream.files() == ["a.jsonl", "c.jsonl", "d.jsonl", "deep/b.jsonl", "e.jsonl"]
    found = []
    for window in stream.windows():
        run_whole("verify", window)
        found += read_shards(window)
        assert not (window / "work").exists()
    texts = [text for each in stream.texts.values() for text in each]
    everything = write(tmp_path / "all.jsonl", texts)
    tokenizer = ("--tokenizer", tmp_path / "tok" / "tokenizer.json", "--append", END)
    run_whole("tokenize", "--input", everything, *tokenizer, "--output", tmp_path / "batch")
    assert sorted(found) == sorted(read_shards(tmp_path / "batch"))


@pytest.mark.parametrize("engine", PRISM_FIRST, indirect=True)
def test_it_ends_with_an_error_where_a_batch_job_would(tmp_path: Path, engine: Engine) -> None:
    stream = Streaming(tmp_path, engine.flags)
    (tmp_path / "in" / "bad.jsonl").write_text('{"text": "good"}\n{"text": 7}\n')
    with stream.running() as process:
        process.communicate(timeout=SECONDS)
        assert process.returncode == 1, stream.said()
    assert "1 of 2 records are unusable" in stream.said()
    assert "Traceback" not in stream.said()
    assert stream.windows() == []


@pytest.mark.parametrize("engine", PRISM_FIRST, indirect=True)
def test_sigterm_stops_it_and_leaves_nothing_running(
    engine: Engine, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    stream = Streaming(tmp_path, engine.flags)
    stream.put("a.jsonl", 20)
    with stream.running("--quiet") as process:
        stream.wait(process, lambda: len(stream.windows()) == 1)
        started = children(process.pid)
        assert started, "Beam's job server, or Prism"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
        assert process.returncode == 143, stream.said()
        assert stream.said() == "bpe-beam stream-tokenize: terminated; the same command resumes\n"
        wait_until(lambda: not alive(started), "all processes to end")
    if engine.name == "cluster":
        cluster: Cluster = request.getfixturevalue("cluster")
        wait_until(lambda: not cluster.running, "the job to end")
        assert list(cluster.jobs().values())[-1] == "CANCELED"
    assert re.search(r"windows finished +1\n", run_whole_text("inspect", stream.out))


def run_whole_text(*args: object) -> str:
    """Run a job that must succeed; return its stdout."""
    ran = run(*args)
    assert ran.code == 0, ran.err
    return ran.out.decode()


@pytest.mark.scheduled
def test_a_restart_takes_over_from_a_job_that_still_runs(cluster: Cluster, tmp_path: Path) -> None:
    """The client of the first job is killed, so nobody cancels it.

    CI has two streams at once in `test_write_tokens.py`, and this in process.
    """
    stream = Streaming(tmp_path, cluster.engine(1).flags)
    stream.put("a.jsonl", 20)
    with stream.running() as process:
        stream.wait(process, lambda: len(stream.windows()) == 1)
    (old,) = cluster.running
    said = "another job of this stream still runs on its runner: this one has taken over"
    with stream.running() as process:
        stream.wait(process, lambda: said in stream.said())
        stream.put("b.jsonl", 20)
        stream.wait(process, lambda: len(stream.windows()) == 2)
        assert old in cluster.running
        assert "stands by" in run_whole_text("inspect", stream.out)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
        assert process.returncode == 130, stream.said()
    assert stream.files() == ["a.jsonl", "b.jsonl"]
    wait_until(lambda: cluster.running == [old], "the second job to end")
    cluster.cancel(old)
    cluster.wait_until_idle()

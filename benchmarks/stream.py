"""Run a stream for a while as an operator's worst week: bad files, kills, two jobs at once.

    python benchmarks/stream.py --files 20000 --seconds 480 --restart-seconds 30 -- --runner ...

The arguments after `--` are the flags of a runner that streams; `scripts/runners.py command prism`
prints them. Small files of three documents arrive over some time, and every fiftieth is bad in one
of five ways. The last file but one waits for a finished window, and the last for two. Two jobs of
the stream run at once; one after the other is stopped by SIGTERM or SIGKILL in turn, and started
again. At the end a last job empties the stream.

It prints figures as JSON, and ends with 1 if a good document is not there exactly once, a bad file
is not named exactly once, or the jobs' memory in the last quarter is above that of the second one.
Memory is the resident memory of a job and all processes that it has started, in MB.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import bpe_beam
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.windows import window_name, windows_of
from bpe_beam.storage import Storage
from bpe_beam.workers.stream.status import read_reports
from bpe_beam.workers.stream.window_log import read_left_out

STORAGE = Storage()
BAD_EVERY = 50
DOCUMENTS = 3  # of a file
MEMORY_GROWTH = 1.3
JOB_SECONDS = 600
LAST_FILES = 2  # they wait for windows, so that there are three, however slow the machine is
BAD = ("archive", "utf16", "record", "cut", "array")


def texts_of(number: int) -> list[str]:
    """Return the documents of a file."""
    return [f"file {number} has document {i}, and these words" for i in range(DOCUMENTS)]


def write_file(folder: Path, number: int) -> list[str]:
    """Write a file, good or bad; return the documents of it that can be read."""
    texts = texts_of(number)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    name, data, good = f"{number:06}.jsonl", lines.encode(), texts
    if number % BAD_EVERY == BAD_EVERY - 1:
        kind = BAD[number // BAD_EVERY % len(BAD)]
        if kind == "archive":
            data, good = b"PK\x03\x04" + data, []
        elif kind == "utf16":
            data, good = lines.encode("utf-16"), []
        elif kind == "record":
            data += b'{"text": 7}\n'
        elif kind == "cut":
            name, data, good = f"{number:06}.jsonl.gz", gzip.compress(data, mtime=0)[:20], []
        else:
            data, good = json.dumps([{"text": text} for text in texts]).encode(), []
    # Under another name first: the stream never sees a half of it.
    temporary = folder / f".{name}"
    temporary.write_bytes(data)
    temporary.rename(folder / name)
    return good


class Job:
    """One of the two jobs: what runs in its place, and the memory that it takes."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command, self._log = command, log
        self.process = self._start()
        self.codes: Counter[int] = Counter()
        self.slowest_stop = 0.0

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip

    def restart(self, number: int) -> None:
        """Stop the job by a signal, and start it again; SIGKILL takes all of its processes."""
        began = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)
        self.codes[self.process.wait(JOB_SECONDS)] += 1
        self.slowest_stop = max(self.slowest_stop, time.monotonic() - began)
        self.kill()
        self.process = self._start()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def megabytes(self) -> float:
        """Return the resident memory of all processes of the job's session."""
        return sum(_resident(pid) for pid in _session(self.process.pid)) / 1e6


def _session(leader: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(ProcessLookupError, ValueError):
            if os.getsid(int(entry.name)) == leader:
                yield int(entry.name)


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGESIZE"
        )
    except OSError:
        return 0


class Week:
    """The stream: its folders, its files, its jobs, and what was seen of it."""

    def __init__(self, folder: Path, files: int, flags: Sequence[str]) -> None:
        self.input, self.output, self.files = folder / "in", folder / "out", files
        self.input.mkdir()
        self._log = folder / "log"
        tokenizer = folder / "tokenizer.json"
        texts = [text for number in range(200) for text in texts_of(number)]
        bpe_beam.train(texts, vocab_size=400).save(str(tokenizer))
        self._command = (
            *(sys.executable, "-m", "bpe_beam.cli.main", "stream-tokenize", *flags),
            *("--tokenizer", str(tokenizer), "--input", f"{self.input}/"),
            *("--output", str(self.output), "--bad-files", "set_aside"),
            *("--poll-seconds", "1", "--window-seconds", "2"),
        )  # fmt: skip
        self.good: list[str] = []
        self.bad: set[str] = set()
        self.lags: list[tuple[int, float]] = []
        self.memory: list[float] = []
        self._counted: list[int] = []  # the files of each finished window
        self._written = 0
        self._lock, self._stopped = threading.Lock(), threading.Event()

    def run(self, seconds: float, restart_seconds: float) -> dict[str, Any]:
        """Run the stream to its end, with files that arrive over some time; return the figures."""
        began = time.monotonic()
        producer = threading.Thread(target=self._produce, args=(seconds,), daemon=True)
        producer.start()
        jobs = [Job(self._command, self._log) for _ in range(2)]
        try:
            restarts, next_restart = 0, time.monotonic() + restart_seconds
            while producer.is_alive() or self._waiting() > 0:
                time.sleep(0.5)
                self._look(jobs)
                for job in jobs:
                    if job.process.poll() is not None:
                        job.restart(signal.SIGKILL)  # it ended by itself
                if time.monotonic() >= next_restart:
                    number = signal.SIGKILL if restarts % 2 else signal.SIGTERM
                    jobs[restarts // 2 % 2 ^ restarts % 2].restart(number)
                    restarts, next_restart = restarts + 1, time.monotonic() + restart_seconds
        finally:
            self._stopped.set()
            for job in jobs:
                job.kill()
            producer.join()
        last = subprocess.run(
            [*self._command, "--until-idle-seconds", "0", "--quiet"],
            capture_output=True, text=True, timeout=JOB_SECONDS, check=False,
        )  # fmt: skip
        if last.returncode:
            raise SystemExit(last.stderr)
        return {
            "files": self.files,
            "minutes": round((time.monotonic() - began) / 60, 1),
            "restarts": restarts,
            "exit_codes": dict(sum((job.codes for job in jobs), Counter[int]())),
            "slowest_stop_seconds": round(max(job.slowest_stop for job in jobs), 1),
            "most_files_waiting": max((files for files, _ in self.lags), default=0),
            "longest_waiting_seconds": max((seconds for _, seconds in self.lags), default=0),
            "megabytes_of_second_quarter": self._memory_of(1),
            "megabytes_of_last_quarter": self._memory_of(3),
            **self._outcome(),
        }

    def _produce(self, seconds: float) -> None:
        began = time.monotonic()
        for number in range(self.files):
            due = began + seconds * number / self.files
            if due > time.monotonic():
                self._stopped.wait(due - time.monotonic())
            while self._finished() <= min(number - 1, number - self.files + LAST_FILES):
                if self._stopped.wait(0.5):
                    return
            self.good += write_file(self.input, number)
            self._written += 1
            if number % BAD_EVERY == BAD_EVERY - 1:
                (name,) = (path.name for path in self.input.glob(f"{number:06}.*"))
                self.bad.add(name)

    def _waiting(self) -> int:
        """Return the number of files that are in no window that is finished."""
        self._finished()
        return self._written - sum(self._counted)

    def _finished(self) -> int:
        """Return the number of windows that are finished, and count the files of new ones."""
        with self._lock:
            # Windows finish in the order of their numbers, from 0.
            while (
                self.output / (name := window_name(len(self._counted))) / MANIFEST_FILE
            ).exists():
                manifest = read_manifest(STORAGE, str(self.output / name))
                left_out = read_left_out(STORAGE, str(self.output), name)
                self._counted.append(len(manifest.plan["files"]) + len(left_out))
            return len(self._counted)

    def _look(self, jobs: Sequence[Job]) -> None:
        self.memory.append(sum(job.megabytes() for job in jobs))
        for report in read_reports(STORAGE, str(self.output))[:1]:
            since = report.lag.oldest_since
            waits = 0 if since is None else round(report.at - since, 1)
            self.lags.append((report.lag.files_waiting, waits))

    def _memory_of(self, quarter: int) -> int:
        size = len(self.memory)
        part = self.memory[size * quarter // 4 : size * (quarter + 1) // 4]
        return round(median(part)) if part else 0

    def _outcome(self) -> dict[str, Any]:
        """Return what is in the windows, against what arrived."""
        output = str(self.output)
        windows = windows_of(STORAGE, output)
        data = bpe_beam.shards.open(output)
        tokenizer = bpe_beam.Tokenizer.from_file(f"{output}/{windows.finished[0]}/__tokenizer")
        texts = Counter(tokenizer.decode(ids.tolist()) for ids in data)
        named: Counter[str] = Counter()
        for name in windows.finished:
            named.update(bad.name for bad in read_left_out(STORAGE, output, name))
            for rejects in read_manifest(STORAGE, f"{output}/{name}").rejects.files:
                rows = (self.output / name / rejects.name).read_text().splitlines()
                named.update(json.loads(row)["file"] for row in rows)
        wanted = Counter(self.good)
        return {
            "windows": len(windows.finished),
            "windows_open": len(windows.open),
            "documents": texts.total(),
            "documents_missing": (wanted - texts).total(),
            "documents_twice": (texts - wanted).total(),
            "bad_files": len(self.bad),
            "bad_files_not_named_once": len(self.bad ^ {*named}) + named.total() - len(named),
        }


def problems_of(figures: dict[str, Any]) -> list[str]:
    """Return the names of the figures that are wrong."""
    zeros = ("windows_open", "documents_missing", "documents_twice", "bad_files_not_named_once")
    problems = [name for name in zeros if figures[name]]
    before, after = (figures[f"megabytes_of_{name}_quarter"] for name in ("second", "last"))
    if after > MEMORY_GROWTH * before:
        problems.append("megabytes_of_last_quarter")
    if not figures["most_files_waiting"]:
        problems.append("most_files_waiting")
    return problems


def main(argv: Sequence[str] | None = None) -> int:
    """Run the stream that the arguments describe, and print its figures."""
    parser = argparse.ArgumentParser(description="Run a stream with bad files and kills.")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--restart-seconds", type=float, default=30.0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("flags", nargs="+", help="flags of the runner, after --")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="bpe-beam-stream-") as temporary:
        folder = arguments.folder or Path(temporary)
        week = Week(folder, arguments.files, arguments.flags)
        figures = week.run(arguments.seconds, arguments.restart_seconds)
    print(json.dumps(figures, indent=2))
    for problem in problems_of(figures):
        print(f"wrong: {problem}", file=sys.stderr)
    return 1 if problems_of(figures) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run every job on every runner: compare the bytes, and measure the cost. Linux only.

    python benchmarks/runners.py english.jsonl.gz --megabytes 300

Repeats the corpus up to the given size, unpacked, and runs count, train (from the corpus),
tokenize and verify in process, without Beam and with Beam, on Prism, on Spark and Flink in one
process, and on a Flink cluster of two task managers with two slots each. `scripts/runners.py` gets
the required programs.

For each job it prints the wall time of the whole command, the CPU seconds of all its processes, and
the peak of their resident memory (sampled ten times a second, MB): the driver, which is the command
itself; the engine, which is Java (job server, task managers and job manager) or Prism; and workers
in separate processes. Memory that processes share counts for each. Ends with 1 if the artifacts of
a runner differ from the artifacts of the first runner.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import fsspec

SCRIPT = Path(__file__).parents[1] / "scripts" / "runners.py"
JOBS = ("count", "train", "tokenize", "verify")
KINDS = ("driver", "engine", "workers")
CLUSTER = "Flink cluster, parallelism "
WAYS = {
    "in process, 1 worker": ["--workers", "1"],
    "in process, 2 workers": ["--workers", "2"],
    "Beam in process, 2 threads": ["--direct_num_workers=2"],
    "Prism": ["prism"],
    "Spark, one process": ["spark"],
    "Flink, one process": ["flink"],
    **{f"{CLUSTER}{n}": [f"--parallelism={n}"] for n in (1, 2, 4)},
}
_SAMPLES_A_SECOND = 10
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Process:
    """A process as /proc shows it now."""

    parent: int
    session: int
    cpu: float
    memory: int
    name: str


@dataclass
class Sampler:
    """A thread that samples the processes of a job.

    Attributes:
        driver: The process id of the command; all that it starts counts too.
        sessions: Those of a cluster.
        peaks: Peak memory in bytes, by kind.
    """

    driver: int
    sessions: set[int]
    peaks: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _first: dict[int, float] = field(default_factory=dict)
    _last: dict[int, float] = field(default_factory=dict)

    def sample(self, begin: bool = False) -> None:
        """Sample once; what processes used at the beginning is not the job's."""
        found = dict(processes())
        ours = {self.driver}
        # A child has a larger number, unless numbers began anew, which one sample can bear.
        for number in sorted(found):
            if found[number].parent in ours or found[number].session in self.sessions:
                ours.add(number)
        sums: dict[str, int] = defaultdict(int)
        for number in ours & found.keys():
            process = found[number]
            sums[self._kind(number, process)] += process.memory
            self._first.setdefault(number, process.cpu if begin else 0.0)
            self._last[number] = process.cpu
        for kind, memory in sums.items():
            self.peaks[kind] = max(self.peaks[kind], memory)

    def _kind(self, number: int, process: Process) -> str:
        if number == self.driver:
            return "driver"
        return "engine" if process.name.startswith(("java", "prism")) else "workers"

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all processes since the beginning."""
        return sum(last - self._first[number] for number, last in self._last.items())


def processes() -> Iterator[tuple[int, Process]]:
    """Return all processes of this machine."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
                pages = int((folder / "statm").read_text().split()[1])
            except OSError:  # ended just now
                continue
            row = rest.split()
            cpu = (int(row[11]) + int(row[12])) / _TICKS
            yield (
                int(folder.name),
                Process(int(row[1]), int(row[3]), cpu, pages * _PAGE, name),
            )


def measure(command: list[str], sessions: set[int]) -> tuple[float, Sampler]:
    """Run a command that must succeed; return its seconds and its sampler."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    sampler = Sampler(process.pid, sessions)
    sampler.sample(begin=True)
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(1 / _SAMPLES_A_SECOND):
            sampler.sample()

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    seconds = time.perf_counter() - started
    ended.set()
    watcher.join()
    if code:
        sys.exit(f"exit code {code} of {shlex.join(command)}")
    return seconds, sampler


def digest(folder: Path) -> str:
    """Return a hash of all files of a job's folder but its summary."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "summary.json":
            found.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    found.update(block)
    return found.hexdigest()


def write_corpus(source: str, megabytes: int, path: Path) -> None:
    """Write the corpus, repeated to the size asked for."""
    with fsspec.open(source, "rb", compression="infer") as stream:
        once = stream.read()
    with path.open("wb") as out:
        for _ in range(max(1, round(megabytes * 1_000_000 / len(once)))):
            out.write(once)
    print(f"{path.stat().st_size / 1e6:.1f} MB")


def commands(corpus: Path, out: Path, flags: list[str], vocab_size: str) -> dict[str, list[str]]:
    """Return each job's command."""
    program = [sys.executable, "-m", "bpe_beam"]
    reading = ["--input", str(corpus), "--quiet"]
    recipe = ["--vocab-size", vocab_size, "--special-token", "<|endoftext|>"]
    encoding = ["--tokenizer", str(out / "train" / "tokenizer.json"), "--append", "<|endoftext|>"]
    options = {"count": [], "train": recipe, "tokenize": encoding}
    found = {
        job: [*program, job, *reading, *more, *flags, "--output", str(out / job)]
        for job, more in options.items()
    }
    found["verify"] = [*program, "verify", str(out / "tokenize"), "--full", *reading]
    return found


def script(*args: str) -> str:
    """Return the output of `scripts/runners.py`."""
    line = [sys.executable, str(SCRIPT), *args]
    return subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout


def flags_of(command: str) -> list[str]:
    """Return the flags that choose the runner, out of a command of the script."""
    return shlex.split(command)[2:-4]


@contextmanager
def runner(way: str, folder: Path) -> Iterator[tuple[list[str], set[int]]]:
    """Yield the flags of a runner and the sessions of its cluster, which ends with the block."""
    parts = WAYS[way]
    if way.startswith(CLUSTER):
        home = folder / "cluster"
        flags = flags_of(script("start", "--home", str(home), "--slots", "2"))
        started = json.loads((home / "cluster.json").read_text())["processes"]
        try:
            yield [*flags, *parts], set(started.values())
        finally:
            script("stop", "--home", str(home))
    elif len(parts) == 1:
        yield flags_of(script("command", parts[0])), set()
    else:
        yield parts, set()


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", help="JSON Lines with a field text, .gz or not")
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--vocab-size", default="32000")
    parser.add_argument("--only", nargs="*", default=list(WAYS), choices=list(WAYS), metavar="WAY")
    arguments = parser.parse_args()
    different = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = folder / "corpus.jsonl"
        write_corpus(arguments.corpus, arguments.megabytes, corpus)
        print(f"{'':29}{'job':10}{'seconds':>9}{'CPU s':>9}", end="")
        print("".join(f"{kind + ' MB':>12}" for kind in KINDS))
        expected: dict[str, str] = {}
        for way in arguments.only:
            out = folder / "out"
            with runner(way, folder) as (flags, sessions):
                for job, line in commands(corpus, out, flags, arguments.vocab_size).items():
                    seconds, seen = measure(line, sessions if job != "verify" else set())
                    peaks = "".join(f"{seen.peaks[kind] / 1e6:12.0f}" for kind in KINDS)
                    row = f"{way:29}{job:10}{seconds:9.1f}{seen.cpu_seconds:9.1f}{peaks}"
                    print(row, flush=True)
            found = {job: digest(out / job) for job in JOBS if job != "verify"}
            expected = expected or found
            different += [f"{way}: {job}" for job in found if found[job] != expected[job]]
            shutil.rmtree(out)
    print(f"different: {'; '.join(different)}" if different else "all artifacts are the same bytes")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()

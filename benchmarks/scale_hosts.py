"""Measure what jobs cost on 1, 2 and 3 limited hosts of Flink, next to `--dry-run --cluster`.

    python benchmarks/scale_hosts.py english.jsonl.gz --hosts 1 2 3 --gigabytes 0.3 --log rows.jsonl

`scripts/hosts.py` makes the hosts on this machine, so it needs root and Linux: a job manager, task
managers of one slot each, a driver, and an S3 server without TLS. The host of a task manager and
its Python worker has `--cpus` of a processor. The text and the jobs are as in `scale.py`. Dry runs
are on the driver's host, which is not limited.

A row has processor seconds by the control groups of hosts, while a job runs: of the driver, the job
manager, and all task managers with their workers; their sum and, after a slash, the prediction; the
requests of driver and workers by the server's log; and the peak of a Python worker's resident
memory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import scale
from growing_words import Growth, texts_of, write

from bpe_beam.jobs.dry_run.pace import Pace

for _folder in ("tests/helpers", "scripts"):
    sys.path.insert(0, str(Path(__file__).parents[1] / _folder))

from flink_hosts import WORKERS, FlinkHosts  # noqa: E402
from hosts import Host  # noqa: E402
from waiting import wait_until  # noqa: E402

_REQUESTS = "/var/tmp/requests"
_JOBS = ("count", "tokenize", "arrange")
_OTHERS = ("driver", "manager")


class Cluster(FlinkHosts):
    """Task managers of one slot, and a store that writes a line for each request."""

    slots = 1
    store_flags = ("--access-log", _REQUESTS)
    disk = "8G"

    @property
    def requests(self) -> list[str]:
        """The lines of the store."""
        log = Path(f"/proc/{self.hosts['store'].pid}/root{_REQUESTS}")
        return log.read_text().splitlines() if log.exists() else []


def processor_seconds(groups: Sequence[Path]) -> float:
    """Return the processor time of a host by its control groups, one for each controller."""
    for group in groups:
        if (usage := group / "cpuacct.usage").exists():
            return int(usage.read_text()) / 1e9
        statistics = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
        if "usage_usec" in statistics:
            return int(statistics["usage_usec"]) / 1e6
    raise SystemExit("this machine has no control groups that measure processor time")


@contextlib.contextmanager
def watched_memory(hosts: Sequence[Host]) -> Iterator[dict[int, int]]:
    """Yield the peaks of resident memory of Python workers, in bytes, by process."""
    peaks: dict[int, int] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(1):
            for process in (each for host in hosts for each in host.processes()):
                with contextlib.suppress(OSError, IndexError):
                    folder = Path(f"/proc/{process}")
                    if b"sdk_worker_main" in (folder / "cmdline").read_bytes():
                        peak = (folder / "status").read_text().split("VmHWM:")[1].split()[0]
                        peaks[process] = 1024 * int(peak)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def measured(cluster: Cluster, count: int, words: Sequence[object]) -> scale.Row:
    """Return what a job takes on so many hosts."""
    names = WORKERS[:count]
    hosts = {name: cluster.hosts[name] for name in (*_OTHERS, *names)}
    cluster.parallelism = count

    def used() -> dict[str, float]:
        return {name: processor_seconds(host._groups()) for name, host in hosts.items()}

    before, requests = used(), len(cluster.requests)
    command = cluster.command(*map(str, words), *cluster.flags, "--quiet", "--overwrite")
    with watched_memory([hosts[name] for name in names]) as peaks, Pace() as pace:
        subprocess.run(command, check=True)
    taken = {name: seconds - before[name] for name, seconds in used().items()}
    addresses = [f" {host.address} " for host in hosts.values()]
    lines = cluster.requests[requests:]
    return {
        **{name: taken[name] for name in _OTHERS},
        "workers": [taken[name] for name in names],
        "processor_seconds": sum(taken.values()),
        "requests": sum(any(each in line for each in addresses) for line in lines),
        "memory_bytes": max(peaks.values(), default=0),
        "pace": pace.mean,
    }


def predicted(cluster: Cluster, count: int, words: Sequence[object]) -> scale.Row:
    """Return what a dry run says of a job on so many hosts."""
    shape = f"workers={count},cores=1,latency=0,start=0"
    more = ("--dry-run", "--cluster", shape, "--summary-file", "-", "--quiet")
    command = cluster.command(*map(str, words), *more)
    with Pace() as pace:
        ran = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    row: scale.Row = json.loads(ran.stdout)
    return {
        "predicted": row["cluster"],
        "predicted_stages": row["cluster_stages"],
        "dry_run_pace": pace.mean,
    }


def rows(arguments: argparse.Namespace, cluster: Cluster) -> Iterator[scale.Row]:
    """Yield the rows of all numbers of hosts and sizes, most hosts first."""
    for name in _OTHERS:
        cluster.hosts[name].limit(cpus=os.cpu_count())
    tokenize = ["tokenize", "--tokenizer", f"{cluster.top}/tokenizer/tokenizer.json"]
    jobs = {"count": ["count"], "tokenize": tokenize, "arrange": [*tokenize, *scale.SEQUENCES]}
    left = len(WORKERS)
    for count in sorted(arguments.hosts, reverse=True):
        for name in WORKERS[count:left]:
            cluster.end(name)
        left = count
        wait_until(lambda left=left: cluster.workers() == left, "the end of task managers", pause=1)
        for name in WORKERS[:count]:
            cluster.hosts[name].limit(cpus=arguments.cpus)
        for gigabytes in arguments.gigabytes:
            for job in arguments.jobs:
                output = f"{cluster.top}/output"
                corpus = f"{cluster.top}/corpus-{gigabytes:g}/*"
                words: list[object] = [*jobs[job], "--input", corpus, "--output", output]
                if arguments.range_bytes:
                    words += ["--range-bytes", arguments.range_bytes]
                row = {
                    **{"job": job, "hosts": count, "gigabytes": gigabytes},
                    **measured(cluster, count, words),
                    **predicted(cluster, count, words),
                }
                row["predicted"]["processor_seconds"] *= row["pace"] / row["dry_run_pace"]
                yield row
                cluster.hosts["store"].run("sh", "-c", "rm -rf /srv/store/*/output")


def line(row: scale.Row) -> str:
    """Return the figures of a row."""
    said, seconds, requests = row["predicted"], row["processor_seconds"], row["requests"]
    return (
        f"{row['job']:9}{row['hosts']:5}{row['gigabytes']:7g}"
        f"{row['pace']:6.2f}{row['dry_run_pace']:6.2f}"
        f"{row['driver']:8.1f}{row['manager']:9.1f}{sum(row['workers']):9.1f}"
        f"{seconds:8.1f} /{said['processor_seconds']:6.1f}"
        f" {said['processor_seconds'] / seconds:5.2f}"
        f"{requests:8} /{said['requests']:6} {said['requests'] / requests:5.2f}"
        f"{row['memory_bytes'] / 1e6:6.0f} /{said['worker_memory_bytes'] / 1e6:5.0f}"
    )


def main() -> None:
    """Measure all numbers of hosts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[0.3])
    parser.add_argument("--jobs", nargs="+", default=_JOBS, choices=_JOBS)
    parser.add_argument("--cpus", type=float, default=0.5, help="of each task manager's host")
    parser.add_argument("--range-bytes")
    parser.add_argument("--log", type=Path, help="gets the rows as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        growth = Growth(texts_of(arguments.texts))
        corpora = {
            size: Path(temporary, f"corpus-{size:g}") for size in sorted(arguments.gigabytes)
        }
        for size, folder in corpora.items():
            first, *_ = write(folder, growth, round(size * 1e9))
        trained = Path(temporary, "trained")
        training = ["train", "--input", first, "--output", trained]
        scale.run(*training, "--vocab-size", scale.VOCABULARY)
        tokenizer = Path(temporary, "tokenizer", "tokenizer.json")
        tokenizer.parent.mkdir()
        (trained / tokenizer.name).rename(tokenizer)
        print(
            f"{'job':9}{'hosts':>5}{'GB':>7}{'pace':>6}{'dry':>6}{'driver':>8}{'manager':>9}{'workers':>9}"
            f"{'processor s':>22}{'requests':>22}{'memory, MB':>13}",
            flush=True,
        )
        with Cluster.running(Path(temporary)) as cluster:
            for folder in (tokenizer.parent, *corpora.values()):
                cluster.put(folder, f"{cluster.top}/{folder.name}")
            for row in rows(arguments, cluster):
                print(line(row), flush=True)
                if arguments.log:
                    with arguments.log.open("a") as log_file:
                        log_file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

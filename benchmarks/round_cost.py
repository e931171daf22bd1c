"""Measure the cost of a round beyond its tasks, on each runner: seconds and memory. Linux only.

    python benchmarks/round_cost.py --jobs 5x1 5x2 1x5 1x10 1x25 1x50

Without `--only` it starts Prism and Flink too, see docs/runners.md.

An artificial round does almost nothing: every task reads a small file and writes another, and sends
references to every partition through a GroupByKey; the output of the partitions is the side input
of the next round's tasks. `5x2` runs five jobs one after another, like a driver's loop, with two
such rounds in each, so two barriers per job. Jobs share one job server of Beam, which the first job
starts.

Each line is measured in a process of its own. It has the seconds of all its jobs, of the first job,
the median of the other jobs, and per round of these; the median seconds until the pipeline is built
and until the runner has accepted it; the CPU seconds of all processes for all jobs; and the peak of
resident memory (MB, sampled ten times a second, shared pages count for each) of the driver, Beam's
job servers, the cluster's Java, and Python workers in separate processes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import yaml
from runners import CLUSTER, Process, Sampler, runner

from bpe_beam.engines.beam import run_pipeline
from bpe_beam.engines.runner_flags import from_mapping
from bpe_beam.settings.common import RunSettings
from bpe_beam.transforms.shuffles import SpreadTasks
from bpe_beam.workers.task_results import MetricSums

WAYS = ("Beam in process, 2 threads", "Prism", "Flink, one process", f"{CLUSTER}2")
KINDS = ("driver", "job server", "cluster", "workers")
_SAMPLES_A_SECOND = 10


def copied(name: str, shards: int) -> Iterator[Any]:
    """Copy a task's file to the next one; yield references for all shards."""
    old = Path(name)
    new = old.with_suffix(f".{int(old.suffix[1:]) + 1}")
    new.write_bytes(old.read_bytes())
    yield beam.pvalue.TaggedOutput("state", str(new))
    for shard in range(shards):
        yield shard, str(new)


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(tuple[int, str])
class FirstRewrite(beam.DoFn):
    """The tasks of a job's first round, whose input came with the job."""

    def __init__(self, shards: int) -> None:
        self.shards = shards

    def process(self, element: str) -> Iterator[Any]:
        """Copy one file."""
        yield from copied(element, self.shards)


@beam.typehints.with_input_types(str, Iterable[str])
@beam.typehints.with_output_types(tuple[int, str])
class Rewrite(beam.DoFn):
    """The tasks of a later round, which wait for the shards of the round before."""

    def __init__(self, shards: int) -> None:
        self.shards = shards

    def process(self, element: str, batch: Any) -> Iterator[Any]:
        """Copy one file."""
        came = sum(1 for _ in batch)
        if came != self.shards:
            raise ValueError(f"{came} shards came, not {self.shards}")
        yield from copied(element, self.shards)


@beam.typehints.with_input_types(tuple[int, Iterable[str]])
@beam.typehints.with_output_types(str)
class Gather(beam.DoFn):
    """Reduce all references of a shard to one answer."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks

    def process(self, element: tuple[int, Iterable[str]]) -> Iterator[str]:
        """Answer if all references have come."""
        shard, places = element
        came = sum(1 for _ in places)
        if came != self.tasks:
            raise ValueError(f"{came} references came, not {self.tasks}")
        yield f"shard {shard}"


def build(pipeline: beam.Pipeline, files: list[str], rounds: int) -> None:
    """Build a job of some rounds."""
    state = pipeline | "Tasks" >> SpreadTasks(files)
    rewrite = beam.ParDo(FirstRewrite(len(files)))
    for number in range(rounds):
        made = state | f"Rewrite{number}" >> rewrite.with_outputs("state", main="refs")
        state = made.state | f"State{number}" >> beam.Map(lambda name: name).with_output_types(str)
        answers = (
            made.refs
            | f"Shuffle{number}" >> beam.GroupByKey()
            | f"Gather{number}" >> beam.ParDo(Gather(len(files)))
        )
        rewrite = beam.ParDo(Rewrite(len(files)), beam.pvalue.AsIter(answers))


def run_settings(flags: list[str]) -> RunSettings:
    """Return the settings of the runner that flags of `bpe-beam` choose."""
    if flags[:1] != ["--config"]:
        return RunSettings(runner_options=tuple(flags))
    config = yaml.safe_load(Path(flags[1]).read_text())
    options = (*from_mapping(config["runner_options"]), *flags[2:])
    return RunSettings(runner=config["runner"], runner_options=options)


def run_here(arguments: argparse.Namespace) -> None:
    """Run jobs in this process, and print what each took as JSON."""
    jobs, rounds = map(int, arguments.here.split("x"))
    run = run_settings(arguments.flags)
    made = []
    with tempfile.TemporaryDirectory() as temporary:
        for i in range(arguments.tasks):
            Path(temporary, f"task-{i:03}.0").write_bytes(bytes(arguments.bytes))
        began = time.perf_counter()
        for job in range(jobs):
            names = (f"task-{i:03}.{job * rounds}" for i in range(arguments.tasks))
            made.append(timed(run, [str(Path(temporary, name)) for name in names], rounds))
        seconds = time.perf_counter() - began
        done = len(list(Path(temporary).glob(f"*.{jobs * rounds}")))
    if done != arguments.tasks:
        sys.exit(f"{done} of {arguments.tasks} files came to be")
    print(json.dumps({"jobs": made, "seconds": seconds}))


def timed(run: RunSettings, files: list[str], rounds: int) -> dict[str, float]:
    """Run one job, as the jobs of bpe-beam are run."""
    seconds_by_step: dict[str, float] = {}
    began = time.perf_counter()

    class Rounds(beam.PTransform):
        def expand(self, begin: beam.pvalue.PBegin) -> None:
            build(begin.pipeline, files, rounds)
            seconds_by_step["built"] = time.perf_counter() - began
            running = begin.pipeline.run

            def submit() -> Any:
                result = running()
                seconds_by_step["taken"] = time.perf_counter() - began
                return result

            begin.pipeline.run = submit

    run_pipeline(run, "Rounds", Rounds(), len(files), MetricSums(), lambda: None)
    seconds_by_step["ended"] = time.perf_counter() - began
    return seconds_by_step


class KindSampler(Sampler):
    """A sampler that distinguishes the cluster's Java from the job's."""

    def _kind(self, number: int, process: Process) -> str:
        if number == self.driver:
            return "driver"
        if not process.name.startswith(("java", "prism")):
            return "workers"
        return "cluster" if process.session in self.sessions else "job server"


def measure(command: list[str], sessions: set[int], limit: float) -> tuple[str, KindSampler]:
    """Run a command; return its output, or how it failed, and the peaks."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        sampler = KindSampler(process.pid, sessions)
        sampler.sample(begin=True)
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(1 / _SAMPLES_A_SECOND):
                sampler.sample()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            out, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.communicate()
            out = f"not done in {limit:.0f} s"
        finally:
            ended.set()
            watcher.join()
        if process.returncode and not out.startswith("not"):
            errors.seek(0)
            out = "failed: " + " ".join(errors.read()[-600:].split())
    return out, sampler


def row(way: str, jobs: str, out: str, seen: KindSampler) -> str:
    """Return a line of the table."""
    peaks = "".join(f"{seen.peaks[kind] / 1e6:11.0f}" for kind in KINDS)
    head = f"{way:27}{jobs:>7}"
    if not out.startswith("{"):
        return f"{head}  {out}\n{'':34}{peaks}"
    measured = json.loads(out)
    each = measured["jobs"]
    later = each[1:] or each
    rounds = int(jobs.split("x")[1])

    def middle(name: str) -> float:
        return statistics.median(job[name] for job in later)

    return (
        f"{head}{measured['seconds']:9.1f}{each[0]['ended']:9.2f}{middle('ended'):9.2f}"
        f"{middle('ended') / rounds:9.2f}{middle('built'):9.2f}{middle('taken'):9.2f}"
        f"{seen.cpu_seconds:9.1f}{peaks}"
    )


def main() -> None:
    """Measure each runner with each number of jobs and rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", nargs="+", default=["5x1", "5x2", "1x5", "1x10"])
    parser.add_argument("--only", nargs="*", default=list(WAYS), choices=WAYS, metavar="WAY")
    parser.add_argument("--tasks", type=int, default=32, help="of a round, and its shards")
    parser.add_argument("--bytes", type=int, default=100_000, help="of a task's file")
    parser.add_argument("--limit", type=float, default=600, help="seconds, of all jobs of a line")
    parser.add_argument("--flag", action="append", default=[], help="more for the runner, whole")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    parser.add_argument("--flags", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        run_here(arguments)
        return
    names = ("seconds", "first", "median", "round", "built", "taken", "CPU s")
    print(f"{'':27}{'jobs':>7}" + "".join(f"{name:>9}" for name in names), end="")
    print("".join(f"{kind:>11}" for kind in KINDS), flush=True)
    passed = ["--tasks", str(arguments.tasks), "--bytes", str(arguments.bytes)]
    with tempfile.TemporaryDirectory() as temporary:
        for way in arguments.only:
            for jobs in arguments.jobs:
                with runner(way, Path(temporary)) as (flags, sessions):
                    line = [sys.executable, __file__, "--here", jobs, *passed, "--flags"]
                    line += [*flags, *arguments.flag]
                    out, seen = measure(line, sessions, arguments.limit)
                print(row(way, jobs, out, seen), flush=True)


if __name__ == "__main__":
    main()

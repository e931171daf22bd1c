"""Compare the estimates of `--dry-run` with the real cost of jobs.

    python benchmarks/estimates.py english.jsonl languages.jsonl --vocab-sizes 8000 32000 128000
    python benchmarks/estimates.py mixed.jsonl --source-field source --jobs count train-input

The corpora are any files of text, such as the files of benchmarks/corpora.py. Each job runs as a
process of its own: first with `--dry-run`, then for real. A row is a job; its figures are estimate
/ real value, and their quotient: seconds of the whole process, its peak of memory, the bytes of all
output files, documents, tokens or unique words. `said` is the time of the dry run.

The real seconds are the median of `--repeat` runs. Other programs on the machine disturb them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

JOBS = ("count", "train-input", "train-counts", "megatron", "parquet")
MEGA = 1e6


class Ran(NamedTuple):
    """A process that ended: its summary, wall-clock seconds, and peak of resident bytes."""

    summary: dict[str, Any]
    seconds: float
    peak: int


def run(*args: object) -> Ran:
    """Run `bpe-beam` with arguments, and fail if it fails."""
    command = [sys.executable, "-m", "bpe_beam", *map(str, args), "--summary-file", "-"]
    started = time.monotonic()
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as output:
        process = subprocess.Popen([*command, "--quiet"], stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - started
        errors.seek(0)
        output.seek(0)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)}\n{errors.read().decode()}")
        return Ran(json.loads(output.read()), seconds, usage.ru_maxrss * 1024)


def size_of(folder: Path) -> int:
    """Return the bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def figure(said: float | None, truth: float, unit: float, digits: int) -> str:
    """Return an estimate, the truth, and their quotient."""
    if said is None:
        return f"{'?':>8} /{truth / unit:9.{digits}f} {'':5}"
    quotient = said / truth if truth else 0.0
    return f"{said / unit:8.{digits}f} /{truth / unit:9.{digits}f} {quotient:5.2f}"


def row(output: Path, repeat: int, *args: object) -> str:
    """Return the figures of a job, whose output is kept."""
    dry = run(*args, "--output", output, "--dry-run")
    ran = []
    for _ in range(repeat):
        shutil.rmtree(output, ignore_errors=True)
        ran.append(run(*args, "--output", output))
    said, truth = dry.summary, ran[-1].summary
    seconds = statistics.median(one.seconds for one in ran)
    peak = max(one.peak for one in ran)
    cells = [
        figure(said["seconds"], seconds, 1, 2),
        figure(said["memory_bytes"], peak, MEGA, 0),
        figure(said["storage_bytes"], size_of(output), MEGA, 2),
        figure(said.get("documents"), truth["documents"], 1, 0),
    ]
    name = "tokens" if "tokens" in said else "unique_words"
    cells.append(figure(said[name], truth[name], 1, 0))
    return "  ".join(cells) + f"  {dry.seconds:5.1f}"


def rows(folder: Path, corpus: str, arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the name and the figures of each job on one corpus."""
    reading: list[object] = ["--input", corpus]
    counting = list(reading)
    if arguments.source_field:
        counting += ["--source-field", arguments.source_field]
    workers = ["--workers", arguments.workers] if arguments.workers else []
    counts = folder / "counts"
    if "count" in arguments.jobs:
        yield "count", row(counts, arguments.repeat, "count", *counting, *workers)
    if not counts.exists():
        run("count", *counting, *workers, "--output", counts)
    tokenizer = folder / "tokenizer"
    run("train", "--counts", counts, "--vocab-size", 32_000, "--output", tokenizer)
    for size in arguments.vocab_sizes:
        trained = ["--vocab-size", size]
        if "train-input" in arguments.jobs:
            found = row(
                folder / f"i{size}", arguments.repeat, "train", *counting, *workers, *trained
            )
            yield f"train --input {size // 1000}k", found
        if "train-counts" in arguments.jobs:
            found = row(
                folder / f"c{size}", arguments.repeat, "train", "--counts", counts, *trained
            )
            yield f"train --counts {size // 1000}k", found
    for kind in ("megatron", "parquet"):
        if kind in arguments.jobs:
            options = ["--tokenizer", tokenizer / "tokenizer.json", "--format", kind]
            found = row(folder / kind, arguments.repeat, "tokenize", *reading, *options, *workers)
            yield f"tokenize {kind}", found


def main() -> None:
    """Print the figures of all jobs and corpora."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--vocab-sizes", nargs="+", type=int, default=[8_000, 32_000, 128_000])
    parser.add_argument("--source-field")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    heads = ("seconds", "memory, MB", "storage, MB", "documents", "tokens or words")
    print(f"{'':30}" + "  ".join(f"{head:>25}" for head in heads) + "   said")
    for corpus in arguments.corpora:
        with tempfile.TemporaryDirectory() as folder:
            for name, figures in rows(Path(folder), corpus, arguments):
                print(f"{Path(corpus).stem[:9]:10}{name:20}{figures}", flush=True)


if __name__ == "__main__":
    main()

"""Measure how long a small job takes as a whole process, in the environment of a user.

    python benchmarks/startup.py FOLDER [--package WHEEL] [--runs 9]

FOLDER gets 130 KB of JSON Lines, and an environment with this package, pandas, transformers and
datasets: pyarrow imports pandas wherever it is installed, so a bare environment flatters. Without a
wheel the package is compiled. Both are kept; pip compiles all modules to bytecode, as for a user.

For each job prints the medians of the wall and CPU seconds, and the modules that are imported, by
package. The jobs take turns, after a first run that does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import time
import venv
from pathlib import Path

OTHERS = ("pandas", "transformers", "datasets")
"""Packages that users of this package have."""

TEXT_BYTES = 130_000

JOBS = {
    "train": "train --input text.jsonl --vocab-size 1000 --output trained",
    "tokenize": "tokenize --input text.jsonl --tokenizer trained --output tokens",
}
"""The arguments of each job; the first one makes what the second one needs."""

MODULES = """
import collections, sys
from bpe_beam.cli import main, process

def run(arguments):
    code = main.main(arguments)
    packages = collections.Counter(
        "the standard library" if name in sys.stdlib_module_names else name
        for name in (module.partition(".")[0] for module in sys.modules)
    )
    print(", ".join(f"{name} {count}" for name, count in packages.most_common()))
    return code

process.run_and_exit(run, sys.argv[1:])
"""
"""A program that runs a job and prints the number of its modules by package."""


def make_environment(folder: Path, package: str) -> None:
    """Make the environment, unless it exists."""
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        venv.create(unfinished, with_pip=True, clear=True)
        python = str(unfinished / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", package, *OTHERS], check=True)
        unfinished.rename(folder)


def write_text(path: Path) -> None:
    """Write documents of random words."""
    chosen = random.Random(1)
    letters = "etaoinshrdlu"
    words = ["".join(chosen.choices(letters, k=chosen.randint(2, 9))) for _ in range(6000)]
    lines = iter(lambda: json.dumps({"text": " ".join(chosen.choices(words, k=100))}) + "\n", None)
    text = ""
    while len(text) < TEXT_BYTES:
        text += next(lines)
    path.write_text(text)


def run(folder: Path, program: list[str], job: str) -> tuple[float, float]:
    """Run a job in a new output folder; return its wall and CPU seconds."""
    shutil.rmtree(folder / JOBS[job].split()[-1], ignore_errors=True)
    python = str((folder / "user" / "bin" / "python").absolute())
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [python, *program, *JOBS[job].split(), "--quiet"]
    # Paths of the caller would add modules; uncompiled ones take twice the time.
    environment = {name: value for name, value in os.environ.items() if name[:6] != "PYTHON"}
    subprocess.run(command, check=True, cwd=folder, env=environment)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print two lines for each job."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--package", default=str(Path(__file__).parent.parent), help="for pip")
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    make_environment(folder / "user", arguments.package)
    write_text(folder / "text.jsonl")
    times: dict[str, list[tuple[float, float]]] = {job: [] for job in JOBS}
    for _ in range(arguments.runs + 1):
        for job, measured in times.items():
            measured.append(run(folder, ["-m", "bpe_beam"], job))
    for job, measured in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*measured[1:], strict=True))
        print(f"{job}: {wall:.3f} s, {cpu:.3f} s of CPU; modules:", flush=True)
        run(folder, ["-c", MODULES], job)


if __name__ == "__main__":
    main()

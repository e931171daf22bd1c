"""Compare the time of `bpe-beam tokenize --format F` with `--format megatron`.

    python benchmarks/formats.py CORPUS.jsonl --tokenizer tokenizer.json --prepend '<|endoftext|>'

It measures whole processes, from the start of Python to the files on disk. Each pair is one run
of Megatron and one of the format, in alternating order. It prints the size of the shards, the
medians of the wall and CPU seconds, and the medians of the ratios within pairs. The same format
twice shows the noise of the machine. `--prepend` is needed for llm.c, whose documents begin with a
token.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bpe_beam.shards.formats import SHARD_FORMATS

YARDSTICK = "megatron"
COMMAND = str(Path(sys.executable).with_name("bpe-beam"))


class Run(NamedTuple):
    """What a whole process took, in seconds, and the bytes of its shards."""

    wall: float
    cpu: float
    size: int


def tokenize(options: argparse.Namespace, format_: str, folder: Path) -> Run:
    """Return what the shards of one format took."""
    output = folder / "tokens"
    # What the runs before have left to write is not this run's.
    os.sync()
    command = [COMMAND, "tokenize", "--input", *options.corpus, "--tokenizer", options.tokenizer]
    command += ["--output", str(output), "--format", format_, "--workers", str(options.workers)]
    command += ["--quiet"]
    if options.prepend:
        command += ["--prepend", options.prepend]
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit {process.returncode}: {' '.join(command)}")
    size = sum(file.stat().st_size for file in output.glob("shard-*"))
    shutil.rmtree(output)
    return Run(wall, used.ru_utime + used.ru_stime, size)


def compare(options: argparse.Namespace, format_: str, folder: Path) -> str:
    """Return a row of the table."""
    runs: dict[bool, list[Run]] = {True: [], False: []}
    for pair in range(options.pairs):
        for ours in (False, True) if pair % 2 else (True, False):
            runs[ours].append(tokenize(options, format_ if ours else YARDSTICK, folder))
    cells = [f"{runs[True][0].size / 1e6:,.1f}"]
    for each in ("wall", "cpu"):
        pairs = [(getattr(a, each), getattr(b, each)) for a, b in zip(*runs.values(), strict=True)]
        median = statistics.median(own for own, _ in pairs)
        ratio = statistics.median(own / other for own, other in pairs)
        cells += [f"{median:.2f}", f"{ratio:.2f}"]
    return f"| {format_} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", nargs="+", help="files of text")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--prepend", help="a token before each document")
    parser.add_argument("--formats", nargs="+", default=list(SHARD_FORMATS), metavar="NAME")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", help="where shards are written and removed")
    options = parser.parse_args()
    print("| format | MB | wall seconds | times Megatron | CPU seconds | times Megatron |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        tokenize(options, YARDSTICK, Path(folder))
        for format_ in options.formats:
            if format_ != "llmc" or options.prepend:
                print(compare(options, format_, Path(folder)), flush=True)


if __name__ == "__main__":
    main()

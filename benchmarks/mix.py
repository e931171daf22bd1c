"""Compare `bpe-beam mix` with `convert` and the arranging of `tokenize`, for the same documents.

    python benchmarks/mix.py FOLDER [--megabytes 1000] [--format megatron] [--runs 3]
        [--workers 2] [--check 1.2]

It makes tokens folders of three sources in FOLDER, unless they are there: 60, 30 and 10 % of so
many megabytes of text. Then, in turns, `mix` takes all of their documents to packed, shuffled
shards; and `convert` joins the folders, and the steps of `tokenize` make the same sequences.
Each is a process of its own. It prints the medians of the wall and CPU seconds, the peak memory of
the process and its children, and the ratios; with `--check`, it fails above that ratio of seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np

from bpe_beam.folders.artifact_names import MANIFEST_FILE, TOKENIZER_FILE
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.storage import Storage

SHARES = {"web": 0.6, "code": 0.3, "math": 0.1}
END = "<|endoftext|>"
LENGTH, SEED = 2049, 7
COMMAND = str(Path(sys.executable).with_name("bpe-beam"))


class Run(NamedTuple):
    """What processes took: seconds, and bytes of memory at their peak."""

    wall: float
    cpu: float
    memory: int


def memory_of(process: int) -> int:
    """Return the bytes of memory of a process and its children; shared pages count once."""
    try:
        rows = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        tasks = [*Path(f"/proc/{process}/task").iterdir()]
        children = [each for task in tasks for each in (task / "children").read_text().split()]
    except (OSError, ProcessLookupError):  # it has ended
        return 0
    own = next((int(row.split()[1]) for row in rows if row.startswith("Pss:")), 0) * 1024
    return own + sum(memory_of(int(child)) for child in children)


def measured(*command: object) -> Run:
    """Run a command and return what it took."""
    os.sync()  # what earlier runs have left to write is not this run's
    began = time.perf_counter()
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL)
    peak, ended = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.1):
            peak = max(peak, memory_of(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    ended.set()
    watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit {process.returncode}: {' '.join(map(str, command))}")
    return Run(wall, used.ru_utime + used.ru_stime, peak)


def documents(name: str, megabytes: float) -> Iterator[str]:
    """Yield lines of JSON with an id and a text; the words are made, and about as frequent as in
    text.
    """
    made = np.random.default_rng(len(name))
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "in", "o", "ur")]
    pick = random.Random(0).choices
    words = ["".join(pick(syllables, k=1 + at % 4)) for at in range(50_000)]
    bounds = np.cumsum(1 / np.arange(1, len(words) + 1))
    remaining, number = megabytes * 1e6, 0
    while remaining > 0:
        picks = np.searchsorted(bounds, made.random(1_000_000) * bounds[-1]).tolist()
        start = 0
        while start < len(picks) and remaining > 0:
            stop = start + 1 + int(made.lognormal(5.5, 1.2))
            text = " ".join([words[pick] for pick in picks[start:stop]])
            line = json.dumps({"id": f"{name}-{number}", "text": text})
            yield f"{line}\n"
            start, number, remaining = stop, number + 1, remaining - len(line)


def make_sources(folder: Path, megabytes: float, format_name: str) -> list[Path]:
    """Return tokens folders of the sources, made unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, corpus = folder / "tokenizer", folder / "corpus.jsonl"
    made = []
    for name, share in SHARES.items():
        made.append(folder / f"{name}-{megabytes:g}-{format_name}")
        if (made[-1] / MANIFEST_FILE).exists():
            continue
        with corpus.open("w") as file:
            file.writelines(documents(name, share * megabytes))
        if not (tokenizer / TOKENIZER_FILE).exists():
            run("train", "--input", corpus, "--vocab-size", 32_000, "--special-token", END,
                "--output", tokenizer)  # fmt: skip
        run("tokenize", "--input", corpus, "--tokenizer", tokenizer, "--append", END,
            "--format", format_name, "--output", made[-1])  # fmt: skip
        corpus.unlink()
    return made


def run(*arguments: object) -> None:
    subprocess.run([COMMAND, *map(str, arguments), "--quiet"], check=True)


def arrange(documents: str, output: str, workers: int) -> None:
    """Make sequences of a tokens folder in this process, by the steps of `tokenize`."""
    from bpe_beam.folders.claim import claim_folder
    from bpe_beam.jobs.tokenize.arrange_steps import ArrangeSteps
    from bpe_beam.progress import Progress
    from bpe_beam.settings.common import RunSettings
    from bpe_beam.shards.shard_rows import Arrangement
    from bpe_beam.tokenizer.tokenizer import Tokenizer
    from bpe_beam.workers.document_encoding import Encoding

    storage, tokenized = Storage(), read_manifest(Storage(), documents)
    tokenizer = Tokenizer.from_file(f"{documents}/__tokenizer")
    arrangement = Arrangement(
        sequence_length=LENGTH, packing="best_fit", pad_token=END, shuffle_seed=SEED
    )
    settings = SimpleNamespace(
        format=tokenized.format, columns=(), run=RunSettings(workers=workers)
    )
    inputs = SimpleNamespace(
        settings=settings, storage=storage, tokenizer=tokenizer,
        encoding=Encoding.of(tokenizer, **tokenized.encoding),
    )  # fmt: skip
    folder = claim_folder(storage, output, {"job": "tokenize"}, [])
    steps = ArrangeSteps(
        cast(Any, inputs), arrangement, tokenizer.token_to_id(END), folder, documents, tokenized,
        Progress("none"),
    )  # fmt: skip
    steps.write(steps.plans(steps.measure()))


def main() -> None:
    """Print what the jobs take."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--format", default="megatron")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--check", type=float, help="highest ratio of seconds, such as 1.2")
    parser.add_argument("--arrange", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arrange:
        arrange(*options.arrange, options.workers)
        return
    sources = make_sources(options.folder, options.megabytes, options.format)
    tokens = [read_manifest(Storage(), str(path)).totals.tokens for path in sources]
    joined, output = options.folder / "joined", options.folder / "output"
    run_with = ("--workers", options.workers, "--quiet")
    of_each = ",".join(f"{name}={each}" for name, each in zip(SHARES, tokens, strict=True))
    jobs = {
        "mix": [
            (COMMAND, "mix", "--input", *(f"{n}={p}" for n, p in zip(SHARES, sources, strict=True)),
             "--tokens-of", of_each, "--sequence-length", LENGTH, "--packing", "best_fit",
             "--pad-token", END, "--shuffle-seed", SEED, *run_with, "--output", output),
        ],
        "convert": [(COMMAND, "convert", *sources, *run_with, "--output", joined)],
        "arrange": [
            (sys.executable, __file__, options.folder, "--workers", options.workers,
             "--arrange", joined, output),
        ],
    }  # fmt: skip
    runs: dict[str, list[Run]] = {name: [] for name in jobs}
    for _ in range(options.runs):
        for name, commands in jobs.items():
            shutil.rmtree(output, ignore_errors=True)
            if name == "convert":
                shutil.rmtree(joined, ignore_errors=True)
            runs[name] += [measured(*command) for command in commands]
    shutil.rmtree(output)
    shutil.rmtree(joined)
    middle = {
        name: Run(*(statistics.median(values) for values in zip(*found, strict=True)))  # type: ignore[arg-type]
        for name, found in runs.items()
    }
    for name, each in middle.items():
        print(f"{name:8} {each.wall:7.2f} s, {each.cpu:7.2f} s CPU, {each.memory / 1e6:7.0f} MB")
    together = [middle["convert"][at] + middle["arrange"][at] for at in (0, 1)]
    ratios = [middle["mix"][at] / together[at] for at in (0, 1)]
    memory = middle["mix"].memory / max(middle["convert"].memory, middle["arrange"].memory)
    print(f"mix / (convert + arrange): {ratios[0]:.2f}, {ratios[1]:.2f} CPU, {memory:.2f} memory")
    if options.check is not None and max(ratios) > options.check:
        raise SystemExit(f"mix takes more than {options.check} times as long")


if __name__ == "__main__":
    main()

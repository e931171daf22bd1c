"""Measure the cost of a job on the local engine beyond its kernels, layer by layer.

    python benchmarks/overhead.py CORPUS.jsonl --workers 2 --runs 3

The corpus is any file of text, such as the files of benchmarks/corpora.py. Five layers run in
turn, with the same number of threads: the kernel alone, on documents in memory; reading documents,
from storage to Arrow batches; the split functions, which read, count or encode, write and record,
called from plain threads; the job in this process, which adds the local engine, the plan, the proof
and the publication of outputs; and the command, which adds the start of Python and its imports. The
figures are medians of seconds; the last column is a layer's share of the command's time.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count as numbers
from pathlib import Path
from typing import Any

from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.counts.word_table import PARTITIONS, WordCounter, WordRules
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.jobs import count, tokenize, train
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.parsing import parse_size
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.train import TrainSettings
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.count_split import BlocksReference, CountTask, count_split, write_parts
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.split_task import split_tasks
from bpe_beam.workers.tokenize_split import TokenizeTask, tokenize_split

RULES = WordRules()


class Case:
    """A corpus, a tokenizer, and a number of threads."""

    def __init__(self, folder: Path, path: Path, workers: int, range_bytes: int) -> None:
        self.folder = folder
        self.storage = Storage()
        self.input = InputSettings(inputs=(str(path),), range_bytes=range_bytes)
        self.run = RunSettings(workers=workers, quiet=True)
        self.plan: Plan = make_plan(self.storage, [str(path)], range_bytes=range_bytes)
        self.pool = ThreadPoolExecutor(workers)
        self.fresh = (str(folder / f"out-{i}") for i in numbers())
        learned = TrainSettings(
            output=str(folder / "tok"), vocab_size=32_000, input=self.input, run=self.run
        )
        train.run(learned, Progress("none"))
        self.tokenizer = Tokenizer.from_file(str(folder / "tok" / "tokenizer.json"))

    def each(self, call: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Call a function on all threads."""
        return list(self.pool.map(call, items))

    def texts(self) -> list[list[Any]]:
        """Return the texts of each split."""
        read = ReadSettings()
        return [
            [b.column("text") for b in read_split(self.storage, self.plan, split, read, refuse)]
            for split in self.plan.splits
        ]

    def new_folder(self) -> TaskFolder:
        """Return a new folder to write into."""
        url = next(self.fresh)
        for name in ("work", "rejects"):
            (Path(url) / name).mkdir(parents=True)
        return TaskFolder(self.storage, url, "")


def refuse(reject: object) -> None:
    """Raise for a reject: the corpus has none."""
    raise AssertionError(reject)


def read_only(case: Case) -> None:
    """Read each split, and drop its documents."""

    def one(split: Any) -> None:
        for _ in read_split(case.storage, case.plan, split, ReadSettings(), refuse):
            pass

    case.each(one, case.plan.splits)


def count_kernel(case: Case, texts: list[list[Any]]) -> None:
    """Count each split into one table."""

    def one(batches: list[Any]) -> None:
        counts = WordCounter(RULES)
        for batch in batches:
            counts.add_texts(batch)

    case.each(one, texts)


def count_splits(case: Case) -> None:
    """Do all that the workers of a count job do."""
    task = CountTask(case.new_folder(), ReadSettings(), RULES, len(case.plan.splits))
    counted = case.each(lambda work: count_split(task, work), split_tasks(case.plan))
    places: list[list[tuple[int, BlocksReference]]] = [[] for _ in range(PARTITIONS)]
    for split in counted:
        for row in split.outputs:
            places[row[0]].append(row)
    case.each(lambda i: write_parts(task, (i, places[i])), range(PARTITIONS))


def count_job(case: Case) -> None:
    """Run the job in this process."""
    settings = CountSettings(output=next(case.fresh), input=case.input, run=case.run)
    count.run(settings, Progress("none"))


def tokenize_kernel(case: Case, texts: list[list[Any]]) -> None:
    """Encode each split."""

    def one(batches: list[Any]) -> None:
        for batch in batches:
            case.tokenizer.encode_batch(batch, output="arrow")

    case.each(one, texts)


def tokenize_splits(case: Case) -> None:
    """Do all that the workers of a tokenize job do."""
    encoding = Encoding.of(case.tokenizer)
    task = TokenizeTask(
        folder=case.new_folder(),
        reading=ReadSettings(),
        encoding=encoding,
    )
    case.each(lambda work: tokenize_split(task, work), split_tasks(case.plan))


def tokenize_job(case: Case) -> None:
    """Run the job in this process."""
    settings = TokenizeSettings(
        tokenizer=str(case.folder / "tok" / "tokenizer.json"),
        output=next(case.fresh),
        input=case.input,
        run=case.run,
    )
    tokenize.run(settings, Progress("none"))


def command(case: Case, job: str) -> None:
    """Run the job in a process of its own."""
    arguments = [sys.executable, "-m", "bpe_beam", job, "--quiet", "--output", next(case.fresh)]
    arguments += ["--input", *case.input.inputs, "--range-bytes", str(case.input.range_bytes)]
    arguments += ["--workers", str(case.run.workers)]
    if job == "tokenize":
        arguments += ["--tokenizer", str(case.folder / "tok" / "tokenizer.json")]
    subprocess.run(arguments, check=True)


def layers(case: Case, job: str) -> dict[str, Callable[[], None]]:
    """Return what is timed, from the inside out."""
    texts = case.texts()
    if job == "count":
        inner = (lambda: count_kernel(case, texts), lambda: count_splits(case))
        whole = lambda: count_job(case)  # noqa: E731
    else:
        inner = (lambda: tokenize_kernel(case, texts), lambda: tokenize_splits(case))
        whole = lambda: tokenize_job(case)  # noqa: E731
    return {
        "kernel": inner[0],
        "reading": lambda: read_only(case),
        "split functions": inner[1],
        "job": whole,
        "command": lambda: command(case, job),
    }


def main() -> None:
    """Print a line for each layer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="a file of text")
    parser.add_argument("--range-bytes", default="16MB")
    parser.add_argument("--jobs", nargs="+", choices=["count", "tokenize"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    total = arguments.corpus.stat().st_size
    with tempfile.TemporaryDirectory() as folder:
        range_bytes = parse_size(arguments.range_bytes)
        case = Case(Path(folder), arguments.corpus, arguments.workers, range_bytes)
        for job in arguments.jobs or ["count", "tokenize"]:
            timed = layers(case, job)
            times: dict[str, list[float]] = {name: [] for name in timed}
            for _ in range(arguments.runs):
                for name, call in timed.items():
                    started = time.perf_counter()
                    call()
                    times[name].append(time.perf_counter() - started)
            middle = {name: statistics.median(values) for name, values in times.items()}
            print(f"{job}, {total / 1e6:.0f} MB, {arguments.workers} workers")
            for name, seconds in middle.items():
                share = seconds / middle["command"]
                speed = total / seconds / 1e6
                print(f"  {name:16} {seconds:7.2f} s {speed:6.0f} MB/s {share:7.1%}")


if __name__ == "__main__":
    main()

"""Measure evaluation from saved counts and from texts, and the cost of token counts in tokenize.

    python benchmarks/evaluation.py CORPUS.jsonl --source-field source --tokenizer A.json B.json

It measures three things for each tokenizer, as medians of runs in turn: `evaluate --counts` from
counts that were made once; `evaluate --input` without saved counts, next to `tokenize` with the
same tokenizer; and the split functions of `tokenize` on one thread in pairs, with and without token
counts: the ratio of CPU seconds is the cost of counting.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.split_task import split_tasks
from bpe_beam.workers.tokenize_split import TokenizeTask, tokenize_split


def command(*arguments: object) -> float:
    """Run a job, and return its seconds."""
    started = time.perf_counter()
    words = [sys.executable, "-m", "bpe_beam.cli.main", *map(str, arguments), "--quiet"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def cost_of_counting(
    folder: Path, corpus: str, tokenizer: str, source_field: str | None, pairs: int
) -> list[float]:
    """Return the CPU seconds of a tokenized corpus with token counts over those without.

    Args:
        folder: An empty folder.
        corpus: The corpus.
        tokenizer: The tokenizer's file.
        source_field: The field of sources, if there is one.
        pairs: The number of ratios.
    """
    storage = Storage()
    plan = make_plan(storage, [corpus], range_bytes=16_000_000)
    encoding = Encoding.of(Tokenizer.from_file(tokenizer))
    reading = ReadSettings(source_field=source_field)

    def seconds(count_tokens: bool) -> float:
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("work", "rejects"):
            (folder / name).mkdir(parents=True)
        run = TaskFolder(storage, str(folder), "")
        task = TokenizeTask(
            folder=run,
            reading=reading,
            encoding=encoding,
            count_tokens=count_tokens,
        )
        started = time.process_time()
        for element in split_tasks(plan):
            tokenize_split(task, element)
        return time.process_time() - started

    seconds(True)
    ratios = []
    for number in range(pairs):
        order = (True, False) if number % 2 else (False, True)
        found = {count_tokens: seconds(count_tokens) for count_tokens in order}
        ratios.append(found[True] / found[False])
    return ratios


def main() -> None:
    """Measure, and print lines."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus")
    parser.add_argument("--tokenizer", nargs="+", required=True)
    parser.add_argument("--source-field")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=("counts", "texts", "counting"))
    arguments = parser.parse_args()
    sources = ("--source-field", arguments.source_field) if arguments.source_field else ()
    wanted = (arguments.only,) if arguments.only else ("counts", "texts", "counting")
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        text = ("--input", arguments.corpus, *sources)
        if "counts" in wanted:
            counted = command("count", *text, "--output", folder / "counts")
            print(f"count: {counted:.1f} s")
            for path in arguments.tokenizer:
                words = ("evaluate", "--counts", folder / "counts", "--tokenizer", path)
                found = statistics.median(command(*words) for _ in range(arguments.runs))
                print(f"evaluate --counts, {path}: {found:.2f} s")
        first = arguments.tokenizer[0]
        if "texts" in wanted:
            tokenizer = ("--tokenizer", first)
            output = ("--output", folder / "tokens", "--overwrite")
            both = [
                (
                    command("evaluate", *text, *tokenizer),
                    command("tokenize", *text, *tokenizer, *output),
                )
                for _ in range(arguments.runs)
            ]
            found, tokenized = map(statistics.median, zip(*both, strict=True))
            print(f"evaluate --input, {first}: {found:.1f} s; tokenize: {tokenized:.1f} s")
        if "counting" in wanted:
            pairs = 2 * arguments.runs + 1
            ratios = cost_of_counting(
                folder / "work", arguments.corpus, first, arguments.source_field, pairs
            )
            print(f"tokenize with counts over without, {first}: {statistics.median(ratios):.4f}")
            print("  ratios: " + ", ".join(f"{ratio:.4f}" for ratio in sorted(ratios)))


if __name__ == "__main__":
    main()

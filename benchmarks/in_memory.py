"""Compare `bpe_beam.train` on texts in memory with its kernels alone.

    python benchmarks/in_memory.py CORPUS.jsonl --workers 2 --runs 5

The corpus is JSON Lines with a field `text`, such as the files of benchmarks/corpora.py. The runs
alternate, with the same number of threads: the kernels alone, which count Arrow strings in memory
and learn from the words; `bpe_beam.train` on a list of the same texts as str, as bytes, and as
Arrow strings; on a generator; and on the file, with the time of reading. It prints medians of wall
and CPU seconds, and their ratios to the kernels' seconds. The tokenizers are compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa

import bpe_beam
from bpe_beam.counts.word_table import WordCounter, WordRules, WordTable
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.words import gather_words
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.training.tokenizer_parts import tokenizer_of

BATCH_BYTES = 1 << 20


def kernels(texts: pa.Array, vocab_size: int, workers: int) -> bpe_beam.Tokenizer:
    """Count texts on threads, add up their tables, and learn; nothing else."""
    recipe = BpeRecipe(vocab_size=vocab_size)
    rows = max(1, len(texts) * BATCH_BYTES // max(1, texts.nbytes))
    batches = [texts.slice(start, rows) for start in range(0, len(texts), rows)]

    def count(own: list[pa.Array]) -> WordCounter:
        counter = WordCounter(WordRules())
        for batch in own:
            counter.add_texts(batch)
        return counter

    with ThreadPoolExecutor(workers) as pool:
        tables: list[WordTable] = [*pool.map(count, [batches[i::workers] for i in range(workers)])]
    whole, *others = tables
    for other in others:
        whole.add(other)
    return tokenizer_of(learn(gather_words(whole.drain(), False), recipe), recipe)


def main() -> None:
    """Run the comparison, and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()

    with args.corpus.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    strings, data = pa.array(texts, pa.large_string()), [text.encode() for text in texts]
    print(f"{len(texts):,} texts, {sum(map(len, data)) / 1e6:.1f} MB of UTF-8")
    options: dict[str, Any] = {"vocab_size": args.vocab_size, "workers": args.workers}
    rows: dict[str, Callable[[], bpe_beam.Tokenizer]] = {
        "kernels": lambda: kernels(strings, args.vocab_size, args.workers),
        "list of str": lambda: bpe_beam.train(texts, **options),
        "list of bytes": lambda: bpe_beam.train(data, **options),
        "Arrow strings": lambda: bpe_beam.train(strings, **options),
        "generator of str": lambda: bpe_beam.train((text for text in texts), **options),
        "file": lambda: bpe_beam.train(args.corpus, **options),
    }
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    found = set()
    for _ in range(args.runs):
        for name, run in rows.items():
            begun = time.perf_counter(), time.process_time()
            found.add(run())
            ended = time.perf_counter(), time.process_time()
            seconds[name].append((ended[0] - begun[0], ended[1] - begun[1]))
    assert len(found) == 1
    base = [statistics.median(each) for each in zip(*seconds["kernels"], strict=True)]
    print(f"{'':18} {'seconds':>8} {'CPU':>8} {'ratio':>8} {'CPU':>8}")
    for name, runs in seconds.items():
        clock, cpu = (statistics.median(each) for each in zip(*runs, strict=True))
        ratios = f"{clock / base[0]:8.2f} {cpu / base[1]:8.2f}"
        print(f"{name:18} {clock:8.2f} {cpu:8.2f} {ratios}")


if __name__ == "__main__":
    main()

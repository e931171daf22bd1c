"""Measure how fast a file is read to Arrow batches of documents, by one thread and by several.

    python benchmarks/read.py corpus.jsonl
    python benchmarks/read.py corpus.txt.gz --document-separator '<|endoftext|>' --threads 1 2 4

Each thread reads the file's splits that are its share, from storage to batches, and drops them.
Figures are medians, in MB (10^6 bytes) a second: of the file as it is stored, and of the documents'
text. The first reading is not counted, so a local file comes from the page cache.
"""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.readers import read_split
from bpe_beam.corpus.rejects import Reject
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.storage import Storage


def read_share(plan: Plan, settings: ReadSettings, share: int, of: int) -> tuple[int, int, int]:
    """Read every `of`-th split; return (documents, bytes of text, rejects)."""
    documents = text_bytes = 0
    rejects: list[int] = []

    def on_reject(reject: Reject) -> None:
        rejects.append(reject.offset)

    for split in plan.splits[share::of]:
        for batch in read_split(Storage(), plan, split, settings, on_reject):
            ends = memoryview(batch.column("text").buffers()[1]).cast("q")
            documents += len(batch)
            text_bytes += ends[len(batch)] - ends[0]
    return documents, text_bytes, len(rejects)


def measure(
    plan: Plan, settings: ReadSettings, threads: int, runs: int
) -> tuple[float, tuple[int, int, int]]:
    """Return (median seconds, sums over the threads)."""
    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        for run in range(runs + 1):
            begin = time.perf_counter()
            shares = pool.map(lambda i: read_share(plan, settings, i, threads), range(threads))
            documents, text_bytes, rejects = map(sum, zip(*shares, strict=True))
            if run:
                seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), (documents, text_bytes, rejects)


def main() -> None:
    """Print a line for each number of threads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("inputs", nargs="+", help="paths, URLs, globs")
    parser.add_argument("--input-format", default="auto")
    parser.add_argument("--text-field", default="text")
    parser.add_argument("--document-separator", default="\n")
    parser.add_argument("--range-bytes", type=int, help="by default as the jobs do")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    settings = ReadSettings(
        input_format=args.input_format,
        text_field=args.text_field,
        document_separator=args.document_separator,
    )
    plan = make_plan(
        Storage(),
        args.inputs,
        input_format=args.input_format,
        document_separator=args.document_separator,
        range_bytes=args.range_bytes,
    )
    kinds = {f"{file.format}, {file.compression}" for file in plan.files}
    print(f"{len(plan.files)} files ({'; '.join(sorted(kinds))}), {len(plan.splits)} splits")
    for threads in args.threads:
        seconds, (documents, text_bytes, rejects) = measure(plan, settings, threads, args.runs)
        print(
            f"threads {threads}: {plan.size / seconds / 1e6:.0f} MB/s stored, "
            f"{text_bytes / seconds / 1e6:.0f} MB/s text "
            f"({documents} documents, {rejects} rejects, {seconds:.3f} s)"
        )


if __name__ == "__main__":
    main()

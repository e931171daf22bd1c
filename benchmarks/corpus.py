"""Counting a large file, whole jobs: speed by workers and packing, memory over time, the kernel.

    python benchmarks/corpus.py english.jsonl.gz --size 2GB --kinds text zstd --runs 3

The documents are repeated to one file of each kind: plain text and JSON Lines, and JSON Lines in
gzip members, zstd frames (4 MB of text each) or one gzip member. `bpe-beam count` then runs as a
process of its own with one worker and with two, in turn. MB are 10^6 bytes of the file's text as
it is decompressed; medians, and ranges. "Net" leaves out the seconds of a job on a file of one line
(the start of Python and Beam). Memory is the process's resident set, sampled: its peak in
each quarter of the time shows whether it grows with the input. The kernel counts batches of
the same documents that are in memory already, between the jobs, on as many threads as the job has
workers: their sum is the limit of the machine.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path

import fsspec
import pyarrow as pa
import zstandard

from bpe_beam.counts.word_counter import WordCounter
from bpe_beam.settings.parsing import parse_size

FRAME_BYTES = 4_000_000
SAMPLED_BYTES = 100_000_000


def texts_of(path: Path) -> list[str]:
    """Return the corpus's documents; line breaks within become spaces, so that each is a line."""
    with fsspec.open(str(path), "rb", compression="infer") as lines:
        return [" ".join(json.loads(line)["text"].split("\n")) for line in lines]


def blocks(texts: list[str], kind: str, size: int) -> Iterator[bytes]:
    """Yield the file's content before compression, in blocks."""
    block: list[bytes] = []
    held = made = 0
    for text in cycle(texts):
        row = text if kind == "text" else json.dumps({"text": text}, ensure_ascii=False)
        block.append(f"{row}\n".encode())
        held += len(block[-1])
        if held >= FRAME_BYTES or made + held >= size:
            yield b"".join(block)
            made += held
            block, held = [], 0
            if made >= size:
                return


def make(folder: Path, texts: list[str], kind: str, size: int) -> tuple[Path, int]:
    """Write one file; return its path and its size when decompressed."""
    name, pack = KINDS[kind]
    path = folder / name
    total = 0
    with path.open("wb") as file:
        for block in blocks(texts, kind, size):
            total += len(block)
            file.write(pack(block))
    if kind == "gzip_one":
        plain = path.with_suffix("")
        path.rename(plain)
        subprocess.run(["gzip", "-1", plain], check=True)
    return path, total


def bytes_as_they_are(block: bytes) -> bytes:
    """Return the data uncompressed."""
    return block


def gzip_member(block: bytes) -> bytes:
    """Return one gzip member."""
    return gzip.compress(block, 1)


def zstd_frame(block: bytes) -> bytes:
    """Return one zstd frame."""
    return zstandard.ZstdCompressor(write_checksum=True).compress(block)


KINDS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "text": ("a.txt", bytes_as_they_are),
    "jsonl": ("a.jsonl", bytes_as_they_are),
    "zstd": ("a.jsonl.zst", zstd_frame),
    "gzip": ("a.jsonl.gz", gzip_member),
    "gzip_one": ("one.jsonl.gz", bytes_as_they_are),
}


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 after its end."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) * 1024 if found else 0


def run(path: Path, workers: int) -> tuple[float, list[int]]:
    """Count a file; return the seconds, and the peak memory in each quarter of the time."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", "bpe_beam", "count", "--input", str(path)]
        command += ["--output", f"{output}/counts", "--workers", str(workers), "--quiet"]
        started = time.perf_counter()
        process = subprocess.Popen(command)
        held = []
        while process.poll() is None:
            held.append(resident(process.pid))
            time.sleep(0.05)
        seconds = time.perf_counter() - started
        if process.returncode:
            sys.exit(f"the job failed: {' '.join(command)}")
    quarter = max(1, len(held) // 4)
    return seconds, [max(held[i * quarter : (i + 1) * quarter], default=0) for i in range(4)]


def kernel(texts: list[str], threads: int) -> float:
    """Return the MB/s of counting texts in memory, as the job's workers do: a table each."""
    batches, size = [], 0
    batch: list[str] = []
    for text in cycle(texts):
        batch.append(text)
        size += len(text.encode())
        if len(batch) == 1000 or size >= SAMPLED_BYTES:
            batches.append(pa.array(batch, pa.large_string()))
            batch = []
            if size >= SAMPLED_BYTES:
                break

    def count(_: int) -> None:
        counts = WordCounter()
        for each in batches:
            counts.add_texts(each)

    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        list(pool.map(count, range(threads)))
        return threads * size / (time.perf_counter() - started) / 1e6


def middle(values: list[float]) -> str:
    """Return the median and the range."""
    return f"{statistics.median(values):6.0f} ({min(values):.0f} to {max(values):.0f})"


def main() -> None:
    """Print a line for each kind of file and number of workers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="JSON Lines with a field text")
    parser.add_argument("--size", default="2GB", help="of each file, before it is packed")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["text", "jsonl", "zstd"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where files go (default: a new one)")
    given = parser.parse_args()
    texts = texts_of(given.corpus)
    size = parse_size(given.size)
    least = min(given.workers)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        tiny = Path(folder) / "tiny.txt"
        tiny.write_text("one line\n")
        start = statistics.median(run(tiny, least)[0] for _ in range(given.runs))
        print(f"start {start:.2f} s")
        for kind in given.kinds:
            path, total = make(Path(folder), texts, kind, size)
            kernels: dict[int, list[float]] = {workers: [] for workers in given.workers}
            times: dict[int, list[float]] = {workers: [] for workers in given.workers}
            peaks: dict[int, list[int]] = {}
            for _ in range(given.runs):
                for workers in given.workers:
                    kernels[workers].append(kernel(texts, workers))
                    seconds, peaks[workers] = run(path, workers)
                    times[workers].append(seconds)
            print(f"{kind}: {path.stat().st_size / 1e6:.0f} MB stored")
            for workers in given.workers:
                gross, net = (
                    [total / (t - off) / 1e6 for t in times[workers]] for off in (0, start)
                )
                ratios = [
                    statistics.median(
                        (least_time - off) / (time_ - off)
                        for least_time, time_ in zip(times[least], times[workers], strict=True)
                    )
                    for off in (0, start)
                ]
                kernel_speed = statistics.median(kernels[workers])
                quarters = " ".join(f"{peak / 1e6:.0f}" for peak in peaks[workers])
                print(
                    f"  {workers} workers {middle(gross)} MB/s, {ratios[0]:.2f} x {least}; "
                    f"net {middle(net)}, {ratios[1]:.2f} x {least}, "
                    f"{statistics.median(net) / kernel_speed:.2f} x kernel; "
                    f"kernel {middle(kernels[workers])}, "
                    f"{kernel_speed / statistics.median(kernels[least]):.2f} x {least}; "
                    f"MB in memory by quarter: {quarters}"
                )
            path.unlink()


if __name__ == "__main__":
    main()

"""Reading takes the same memory however long a file is."""

from __future__ import annotations

import functools
import gzip
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the peak"),
]

READ = """
import re, sys
from pathlib import Path
from bpe_beam.corpus import ReadSettings, make_plan, read_split
from bpe_beam.storage import Storage

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024

def read(path):
    plan = make_plan(Storage(), [path], range_bytes=1 << 30)
    (split,) = plan.splits
    settings = ReadSettings(document_separator=sys.argv[3])
    rejects = []
    return sum(len(b) for b in read_split(Storage(), plan, split, settings, rejects.append))

read(sys.argv[1])
before = peak()
print(read(sys.argv[2]), peak() - before)
"""

MAKERS = {
    "x.txt": lambda i: b"line %d of a file that is rather long, and longer still\n" % i,
    "x.jsonl": lambda i: b'{"id": %d, "text": "line of a file that is rather long"}\n' % i,
    "newlines.txt": lambda i: b"\n" * 60,
}


@pytest.mark.parametrize(
    ("name", "packed", "separator", "size"),
    [
        ("x.txt", "", "\n", 200_000_000),
        ("x.txt", ".gz", "\n", 200_000_000),
        ("x.txt", ".zst", "\n", 200_000_000),
        ("x.jsonl", "", "\n", 200_000_000),
        ("x.jsonl", ".gz", "\n", 200_000_000),
        ("newlines.txt", "", "\n", 20_000_000),
        ("newlines.txt", "", "\n\n", 20_000_000),
    ],
)
def test_a_long_file(tmp_path: Path, name: str, packed: str, separator: str, size: int) -> None:
    fast_gzip = functools.partial(gzip.open, compresslevel=1)
    opener = {"": open, ".gz": fast_gzip, ".zst": zstandard.open}[packed]
    small, large = tmp_path / f"small{packed}", tmp_path / f"{name}{packed}"
    with opener(small, "wb") as stream:
        stream.write(MAKERS[name](0) * 10)
    written = lines = 0
    with opener(large, "wb") as stream:
        while written < size:
            block = b"".join(MAKERS[name](i) for i in range(lines, lines + 10_000))
            stream.write(block)
            written += len(block)
            lines += 10_000
    documents, growth = measure(small, large, separator)
    assert documents == (lines if name != "newlines.txt" else written // len(separator))
    assert growth < 60


def test_a_long_record(tmp_path: Path) -> None:
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    small.write_bytes(b"small\n")
    large.write_bytes(b"before\n" + b"x" * 100_000_000 + b"\nafter\n")
    documents, growth = measure(small, large, "\n")
    assert documents == 3
    assert growth < 400


def measure(small: Path, large: Path, separator: str) -> tuple[int, int]:
    """Documents of the large file, and by how many MiB the peak grew over reading the small one."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(small), str(large), separator],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    documents, growth = map(int, done.stdout.split())
    print(f"{large.name}: {documents} documents, {growth} MiB")
    return documents, growth

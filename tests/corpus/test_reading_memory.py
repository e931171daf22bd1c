"""Reading takes the same memory however long a file is."""

from __future__ import annotations

import functools
import gzip
from pathlib import Path
from typing import Any

import pytest
import zstandard
from reading_memory import measure

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the peak"),
]


MAKERS = {
    "x.txt": lambda i: b"line %d of a file that is rather long, and longer still\n" % i,
    "x.jsonl": lambda i: b'{"id": %d, "text": "line of a file that is rather long"}\n' % i,
    "newlines.txt": lambda i: b"\n" * 60,
}


@pytest.mark.parametrize(
    ("name", "packed", "separator", "size"),
    [
        ("x.txt", "", "\n", 120_000_000),
        ("x.txt", ".gz", "\n", 120_000_000),
        ("x.txt", ".zst", "\n", 120_000_000),
        ("x.jsonl", "", "\n", 120_000_000),
        ("x.jsonl", ".gz", "\n", 120_000_000),
        ("newlines.txt", "", "\n", 20_000_000),
        ("newlines.txt", "", "\n\n", 20_000_000),
    ],
)
def test_a_long_file(tmp_path: Path, name: str, packed: str, separator: str, size: int) -> None:
    fast_gzip = functools.partial(gzip.open, compresslevel=1)
    opener: Any = {"": open, ".gz": fast_gzip, ".zst": zstandard.open}[packed]
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

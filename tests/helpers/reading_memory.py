"""The memory that a process takes to read a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

READ = """
import re, sys
from pathlib import Path
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.corpus.read_split import read_split
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


def measure(small: Path, large: Path, separator: str) -> tuple[int, int]:
    """Return the large file's documents, and the MiB by which the peak exceeds the small file's."""
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

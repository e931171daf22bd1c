"""Freed memory goes back to the system, though what is still used lies between it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bpe_beam.workers.unused_memory import release_unused_memory

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the memory"),
]


def resident() -> int:
    """Return the bytes that this process has in memory."""
    return 1024 * int(re.findall(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[0])


def test_gaps_between_used_blocks_go_back() -> None:
    blocks = [bytes([number % 256]) * 10_000 for number in range(8_000)]
    used = blocks[::500]
    del blocks
    before = resident()
    release_unused_memory(above=1 << 40)
    assert abs(before - resident()) < 10_000_000
    release_unused_memory(above=50_000_000)
    assert before - resident() > 50_000_000
    assert used[1] == bytes([500 % 256]) * 10_000

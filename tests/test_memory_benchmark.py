"""The memory table of docs/architecture.md: each row has a benchmark, and two of them hold here."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARK = ROOT / "benchmarks" / "memory.py"


def test_each_row_has_a_benchmark() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.partition("## Memory")[2].partition("\n\nA reader")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    named = [re.search(r"\| `(\w+)` \|$", row) for row in rows]
    assert all(named), [row for row, name in zip(rows, named, strict=True) if not name]
    spec = importlib.util.spec_from_file_location("memory_benchmark", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    assert {name[1] for name in named if name} == set(module.ROWS)


@pytest.mark.parametrize("row", ["driver", pytest.param("learner", marks=pytest.mark.slow)])
def test_a_claim_holds(row: str) -> None:
    """The receipts of many sources, and the estimate that decides between local and rounds."""
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--row", row], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr

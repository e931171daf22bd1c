"""A short run of `benchmarks/stream.py`: bad files, kills, and two jobs of one stream at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import ROOT, run_process
from engines import Engine

pytestmark = pytest.mark.runners


def test_a_week_in_a_minute(local_engine: Callable[[str], Engine], tmp_path: Path) -> None:
    command = (sys.executable, str(ROOT / "benchmarks" / "stream.py"))
    size = ("--files", 400, "--seconds", 25, "--restart-seconds", 8, "--folder", tmp_path)
    ran = run_process(*size, "--", *local_engine("prism").flags, command=command)
    assert ran.code == 0, ran.err + ran.out.decode()
    figures = json.loads(ran.out)
    assert figures["restarts"] >= 2
    assert set(figures["exit_codes"]) >= {"143", "-9"}
    assert figures["documents"] == 3 * 394
    assert figures["bad_files"] == 8
    assert figures["windows"] > 2

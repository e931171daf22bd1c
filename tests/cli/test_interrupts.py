"""Signals: one sentence and the exit codes of shells, in a job and while the program loads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bpe_beam.cli import interrupts
from bpe_beam.cli import main as cli

ROOT = Path(__file__).parents[2]
COUNT = ["count", "--input", "a", "--output", "o"]

SLOW_JOB = """
import signal, sys, threading, time, types
# A background job of a shell has the signal ignored, and so have its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
module = types.ModuleType("bpe_beam.jobs.count")
def run(settings, progress):
    # A thread of a runner, in the middle of a long batch.
    threading.Thread(target=time.sleep, args=(300,)).start()
    print("running", flush=True)
    time.sleep(300)
module.run = run
sys.modules[module.__name__] = module
from bpe_beam.cli.start import run
run(["count", "--input", "a", "--output", "o"])
"""

SLOW_START = """
import builtins, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import_module = builtins.__import__
def slow_import(name, *arguments):
    if name == "bpe_beam.cli.main":
        print("running", flush=True)
        time.sleep(300)
    return import_module(name, *arguments)
builtins.__import__ = slow_import
from bpe_beam.cli.start import run
run(["count"])
"""


@pytest.mark.parametrize(
    ("number", "sentence"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")]
)
@pytest.mark.parametrize(
    ("script", "command", "hint"),
    [(SLOW_JOB, "bpe-beam count", "; the same command resumes"), (SLOW_START, "bpe-beam", "")],
)
def test_a_signal_ends_the_process_at_once(
    script: str, command: str, hint: str, number: signal.Signals, sentence: str
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    start = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=600)
    assert time.monotonic() - start < 120
    assert process.returncode == 128 + number
    assert errors == f"{command}: {sentence}{hint}\n"


def test_any_error_after_a_signal_is_its_own(
    job: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(settings: Any, progress: Any) -> dict[str, Any]:
        monkeypatch.setattr(interrupts, "_received", [signal.SIGTERM])
        raise SystemError("error return without exception set")

    job("count", run)
    assert cli.main([*COUNT, "--quiet"]) == 143
    assert "bpe-beam count: terminated; the same command resumes" in capsys.readouterr().err

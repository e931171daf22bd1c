"""The first module of the command line: little memory while the program loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

START = """
import builtins
import_module = builtins.__import__
def failing_import(name, *arguments):
    if name == "bpe_beam.cli.main":
        raise ERROR
    return import_module(name, *arguments)
builtins.__import__ = failing_import
from bpe_beam.cli.start import run
run()
"""


@pytest.mark.parametrize(
    "error", ["MemoryError()", "ImportError('x.so: failed to map segment from shared object')"]
)
def test_little_memory_is_named(error: str) -> None:
    script = START.replace("ERROR", error)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr == "bpe-beam: not enough memory to load the program\n"


def test_other_errors_are_shown() -> None:
    script = START.replace("ERROR", "ImportError('no module x')")
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "no module x" in ran.stderr

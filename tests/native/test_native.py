"""Compiles and runs each header's own test, with the sanitizers on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from compiling import HERE, NATIVE, SANITIZERS, Compile

PROGRAMS = sorted(str(path.relative_to(HERE)) for path in HERE.rglob("test_*.cpp"))
# These need Python and are tested from there: test_bindings.py, and the tests of what they bind.
BINDINGS = set((NATIVE / "bind").glob("*.hpp"))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_header(program: str, tmp_path: Path, compile_program: Compile) -> None:
    binary = tmp_path / "program"
    compile_program([HERE / program], binary, ["-O1", *SANITIZERS])
    done = subprocess.run([binary], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_header_has_a_test() -> None:
    headers = set(NATIVE.rglob("*.hpp")) - BINDINGS
    rooms = [header.relative_to(NATIVE) for header in headers]
    assert {str(path.parent / f"test_{path.stem}.cpp") for path in rooms} <= set(PROGRAMS)

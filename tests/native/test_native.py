"""Compiles and runs each header's own test, with the sanitizers on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from compiling import HERE, NATIVE, SANITIZERS, Compile

PROGRAMS = sorted(path.name for path in HERE.glob("test_*.cpp"))
# These need Python and are tested from there: test_bindings.py, and the tests of what they bind.
BINDINGS = {"binding.hpp", *(path.name for path in NATIVE.glob("bind_*.hpp"))}


@pytest.mark.parametrize("program", PROGRAMS)
def test_header(program: str, tmp_path: Path, compile_program: Compile) -> None:
    binary = tmp_path / "program"
    compile_program([HERE / program], binary, ["-O1", *SANITIZERS])
    done = subprocess.run([binary], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_header_has_a_test() -> None:
    headers = {path.name for path in NATIVE.glob("*.hpp")} - BINDINGS
    assert {f"test_{Path(header).stem}.cpp" for header in headers} <= set(PROGRAMS)

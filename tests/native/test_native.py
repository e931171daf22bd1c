"""Compiles and runs each header's own test, with the sanitizers on.

For 64-bit Arm on another machine (Debian: g++-aarch64-linux-gnu, qemu-user):

CXX=aarch64-linux-gnu-g++ BPE_BEAM_RUN_BY='qemu-aarch64 -L /usr/aarch64-linux-gnu' pytest -m slow
tests/native/test_native.py
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from compiling import (
    HERE,
    NATIVE,
    RUN_BY,
    SANITIZERS,
    Compile,
    compiled_once,
    joined,
    run_compiler,
    shared_folder,
)

# Neighbours are in different folders: two test processes compile two programs at once.
PROGRAMS = [
    str(path.relative_to(HERE))
    for path in sorted(HERE.rglob("test_*.cpp"), key=lambda path: (path.name, path))
]
# These need Python and are tested from there: test_bindings.py, and the tests of what they bind.
BINDINGS = set((NATIVE / "bind").glob("*.hpp"))


@pytest.fixture(scope="session")
def program_of(
    tmp_path_factory: pytest.TempPathFactory, compile_program: Compile
) -> Callable[[str], Path]:
    """Return a function that returns the program of all tests of a folder."""
    shared = shared_folder(tmp_path_factory)

    def program(folder: str) -> Path:
        tests = [HERE / name for name in PROGRAMS if str(Path(name).parent) == folder]
        chosen = "".join(
            f'  if (name == "{test.stem}") return {test.stem}::run(), 0;\n' for test in tests
        )

        def make(output: Path) -> None:
            source = output.with_suffix(".cpp")
            source.write_text(
                f"{joined(tests, 'int main()', 'void run()')}\n"
                "int main(int, char** arguments) {\n  const std::string name = arguments[1];\n"
                f"{chosen}  return 2;\n}}\n"
            )
            compile_program([source], output, ["-O1", *SANITIZERS])

        return compiled_once(shared, f"tests_{folder}", make)

    return program


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_header(program: str, program_of: Callable[[str], Path]) -> None:
    path = Path(program)
    binary = program_of(str(path.parent))
    done = subprocess.run(
        [*RUN_BY, binary, path.stem], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


ARM = ("aarch64-linux-gnu-g++", "qemu-aarch64")


@pytest.mark.slow
@pytest.mark.skipif(not all(map(shutil.which, ARM)), reason=f"needs {ARM[0]} and {ARM[1]}")
@pytest.mark.parametrize("program", ["exact_math", "expected_counts"])
def test_unigram_has_the_same_bits_on_arm(program: str, tmp_path: Path) -> None:
    """Both tests have a hash of all bits of many results."""
    source, binary = HERE / "unigram" / f"test_{program}.cpp", tmp_path / program
    assert "CHECK(hash == " in source.read_text("utf-8")
    done = run_compiler([ARM[0]], [source], binary, ["-O2", "-static"])
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [ARM[1], binary], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_header_has_a_test() -> None:
    headers = set(NATIVE.rglob("*.hpp")) - BINDINGS
    rooms = [header.relative_to(NATIVE) for header in headers]
    assert {str(path.parent / f"test_{path.stem}.cpp") for path in rooms} <= set(PROGRAMS)

"""The compilers of the kernels' tests."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from compiling import (
    INSTALL,
    LIBFUZZER,
    SANITIZERS,
    Compile,
    compiler_of_this_machine,
    run_compiler,
)


@pytest.fixture(scope="session")
def compile_program(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function that compiles a program; a message of the compiler fails the test.

    So does a machine without a compiler or without sanitizers: nothing is skipped.
    """
    compiler = compiler_of_this_machine()
    folder = tmp_path_factory.mktemp("probe")
    probe = folder / "probe.cpp"
    probe.write_text("int main() {}\n")
    done = run_compiler(compiler, [probe], folder / "probe", SANITIZERS)
    if done.returncode != 0:
        pytest.fail(f"{shlex.join(compiler)} has no sanitizers:\n{done.stderr}\n{INSTALL}")

    def compile_with(sources: list[Path], output: Path, flags: list[str]) -> None:
        done = run_compiler(compiler, sources, output, flags)
        assert done.returncode == 0, done.stderr

    return compile_with


@pytest.fixture(scope="session")
def libfuzzer(tmp_path_factory: pytest.TempPathFactory) -> list[str] | None:
    """Return clang's command if it has libFuzzer."""
    if not shutil.which("clang++"):
        return None
    folder = tmp_path_factory.mktemp("libfuzzer")
    probe = folder / "probe.cpp"
    probe.write_text(
        "#include <cstddef>\n#include <cstdint>\n"
        'extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) { return 0; }\n'
    )
    done = run_compiler(["clang++"], [probe], folder / "probe", LIBFUZZER)
    return ["clang++"] if done.returncode == 0 else None

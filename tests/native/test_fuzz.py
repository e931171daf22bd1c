"""Feed each fuzz target with random inputs: by libFuzzer where clang has it, else by our driver.

All targets are in two programs, which compile in less than half the time.
BPE_BEAM_FUZZ_ROUNDS is the number of inputs for each target. libFuzzer takes a millisecond for one
at most, on average, or half a minute for all, and ends earlier if its inputs take longer.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from compiling import (
    HERE,
    LIBFUZZER,
    SANITIZERS,
    Compile,
    compiled_once,
    joined,
    run_compiler,
    shared_folder,
)

DRIVER = HERE / "fuzz_driver.cpp"
TARGETS = sorted(path.name for path in HERE.glob("fuzz_*.cpp") if path != DRIVER)
ENTRY = 'extern "C" int LLVMFuzzerTestOneInput'


ROUNDS = int(os.environ.get("BPE_BEAM_FUZZ_ROUNDS", "4000"))
HEAVY = {
    "fuzz_bpe_learner.cpp",
    "fuzz_charsmap.cpp",
    "fuzz_models.cpp",
    "fuzz_normalizers.cpp",
    "fuzz_sentencepiece_unigram.cpp",
    "fuzz_unigram.cpp",
    "fuzz_word_table.cpp",
}
"""Targets whose rounds cost ten times those of others: they get a tenth of them."""


@pytest.fixture
def program(
    target: str,
    tmp_path_factory: pytest.TempPathFactory,
    compile_program: Compile,
    libfuzzer: list[str] | None,
) -> Path:
    """Return the program of a target; the variable TARGET chooses it among others."""
    half = TARGETS.index(target) % 2  # neighbours in different ones: two processes compile

    def make(output: Path) -> None:
        source = output.with_suffix(".cpp")
        targets = TARGETS[half::2]
        chosen = "".join(
            f'  if (name == "{target}") return {Path(target).stem}::run(data, size);\n'
            for target in targets
        )
        source.write_text(
            f"#include <cstdlib>\n{joined([HERE / each for each in targets], ENTRY, 'int run')}\n"
            f"{ENTRY}(const std::uint8_t* data, std::size_t size) {{\n"
            '  static const std::string name = std::getenv("TARGET");\n'
            f"{chosen}  std::abort();\n}}\n"
        )
        if libfuzzer:
            done = run_compiler(libfuzzer, [source], output, ["-O1", *LIBFUZZER])
            assert done.returncode == 0, done.stderr
        else:
            compile_program([source, DRIVER], output, ["-O1", *SANITIZERS])

    return compiled_once(shared_folder(tmp_path_factory), f"fuzz_{half}", make)


def run(target: str, command: list[str | Path], cwd: Path) -> str:
    """Return what the program prints; its failure is the test's."""
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, errors="replace", check=False,
        timeout=600 + ROUNDS / 10, env={**os.environ, "TARGET": target},
    )  # fmt: skip
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-5000:]
    return output


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_target(target: str, tmp_path: Path, program: Path, libfuzzer: list[str] | None) -> None:
    rounds = ROUNDS // 10 if target in HEAVY else ROUNDS
    if libfuzzer:
        limits = [
            f"-runs={rounds}",
            f"-max_total_time={max(30, ROUNDS // 1000)}",
            "-max_len=2000",
            "-len_control=0",
            "-timeout=60",
        ]
        assert "Done " in run(target, [program, *limits], tmp_path)
    else:
        assert "rounds" in run(target, [program, str(rounds)], tmp_path)


def test_driver(tmp_path: Path, compile_program: Compile) -> None:
    """Where there is no libFuzzer: the driver finds what is wrong and says how to see it again."""
    target = tmp_path / "target.cpp"
    target.write_text(
        '#include <cstdint>\n#include "check.hpp"\n'
        'extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {\n'
        "  CHECK(size < 50 || data[49] != 3);\n  return 0;\n}\n"
    )
    binary = tmp_path / "target"
    compile_program([target, DRIVER], binary, SANITIZERS)
    found = subprocess.run(
        [binary, "1000000", "5"], capture_output=True, text=True, check=False, timeout=600
    )
    assert found.returncode == 1
    assert "CHECK failed: size < 50" in found.stderr
    message = found.stderr.splitlines()[-1]
    assert message.startswith("failed in seed 5, round ")
    again = subprocess.run(
        [binary, "0", "5", message.split()[-1]],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert again.returncode == 1
    assert "CHECK failed: size < 50" in again.stderr

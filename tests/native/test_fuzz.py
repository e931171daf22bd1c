"""Feed each fuzz target with random inputs: by libFuzzer where clang has it, else by our driver.

BPE_BEAM_FUZZ_ROUNDS is the number of inputs for each target. libFuzzer takes a millisecond for one
at most, on average, or half a minute for all, and ends earlier if its inputs take longer.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from compiling import HERE, LIBFUZZER, SANITIZERS, Compile, run_compiler

DRIVER = HERE / "fuzz_driver.cpp"
TARGETS = sorted(path.name for path in HERE.glob("fuzz_*.cpp") if path != DRIVER)


ROUNDS = int(os.environ.get("BPE_BEAM_FUZZ_ROUNDS", "4000"))
HEAVY = {
    "fuzz_bpe_learner.cpp",
    "fuzz_charsmap.cpp",
    "fuzz_models.cpp",
    "fuzz_normalizers.cpp",
    "fuzz_sentencepiece_unigram.cpp",
    "fuzz_word_table.cpp",
}
"""Targets whose rounds cost ten times those of others: they get a tenth of them."""


def run(command: list[str | Path], cwd: Path) -> str:
    """Return what the program prints; its failure is the test's."""
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, errors="replace", check=False,
        timeout=600 + ROUNDS / 10,
    )  # fmt: skip
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-5000:]
    return output


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_target(
    target: str, tmp_path: Path, compile_program: Compile, libfuzzer: list[str] | None
) -> None:
    rounds = ROUNDS // 10 if target in HEAVY else ROUNDS
    binary = tmp_path / "target"
    if libfuzzer:
        done = run_compiler(libfuzzer, [HERE / target], binary, ["-O1", *LIBFUZZER])
        assert done.returncode == 0, done.stderr
        limits = [
            f"-runs={rounds}",
            f"-max_total_time={max(30, ROUNDS // 1000)}",
            "-max_len=2000",
            "-len_control=0",
            "-timeout=60",
        ]
        assert "Done " in run([binary, *limits], tmp_path)
    else:
        compile_program([HERE / target, DRIVER], binary, ["-O1", *SANITIZERS])
        assert "rounds" in run([binary, str(rounds)], tmp_path)


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

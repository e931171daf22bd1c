"""Compiling the kernels' tests with warnings as errors and the sanitizers."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "native"
NATIVE = HERE.parents[1] / "bpe_beam/native"
UNITS = sorted(path for path in NATIVE.rglob("*.cpp") if path.parent.name != "bind")
"""What programs are linked with: the generated tables and the scanners."""

WARNINGS = ["-std=c++20", "-g1", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE}", f"-I{HERE}"]
WARNINGS += ["-ffp-contract=off"]  # as setup.py
RUN_BY = shlex.split(os.environ.get("BPE_BEAM_RUN_BY", ""))
"""What runs the programs of a compiler for other processors, such as qemu-aarch64; it has no
sanitizers."""

SANITIZERS = [] if RUN_BY else ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
LIBFUZZER = ["-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]

INSTALL = """These tests need a C++20 compiler with AddressSanitizer and UndefinedBehaviorSanitizer:
  Debian, Ubuntu:  apt-get install g++         (clang++ also wants libclang-rt-dev)
  Fedora, RHEL:    dnf install gcc-c++ libasan libubsan
  macOS:           xcode-select --install
The variable CXX chooses another compiler."""

Compile = Callable[[list[Path], Path, list[str]], None]


def joined(sources: Sequence[Path], entry: str, renamed: str) -> str:
    """Return one source of several, each in a namespace of its name with another entry.

    Compiling them together takes a third of the time: headers are read, and templates made, once.
    """
    includes = {"#include <string>": None}
    bodies = []
    for path in sources:
        text = path.read_text("utf-8")
        assert text.count(entry) == 1, f"{path} must have {entry!r} once"
        includes.update(dict.fromkeys(re.findall(r"^#include .*$", text, re.MULTILINE)))
        text = text.replace(entry, renamed)
        bodies.append(f'namespace {path.stem} {{\n#line 1 "{path}"\n{text}\n}}\n')
    return "\n".join([*includes, *bodies])


def compiled_once(folder: Path, name: str, make: Callable[[Path], None]) -> Path:
    """Return a program that one of several test processes makes, and the others wait for."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            make(folder / f"{name}.part")
            (folder / f"{name}.part").rename(program)
    return program


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all test processes of this run share."""
    base = factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "programs"


def run_compiler(
    compiler: list[str], sources: list[Path], output: Path, flags: list[str]
) -> subprocess.CompletedProcess[str]:
    """Run the compiler; it may fail."""
    linked = [*sources, *units_of(sources)]
    command = [*compiler, *WARNINGS, *flags, *map(str, linked), "-o", str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def units_of(sources: Sequence[Path]) -> list[Path]:
    """Return the units whose headers the sources include, also through other headers."""
    reached: set[Path] = set()
    waiting = list(sources)
    while waiting:
        path = waiting.pop()
        if path.exists() and path not in reached:
            reached.add(path)
            names = re.findall(r'^#include "(.+)"$', path.read_text("utf-8"), re.MULTILINE)
            waiting += [folder / name for name in names for folder in (NATIVE, HERE)]
    return [unit for unit in UNITS if unit.with_suffix(".hpp") in reached]


def compiler_of_this_machine() -> list[str]:
    """Return the C++ compiler's command: $CXX, or the first that exists."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "clang++", "c++"]
    for name in names:
        command = shlex.split(name)
        if shutil.which(command[0]):
            return command
    pytest.fail(f"no C++ compiler: {', '.join(names)} not found\n{INSTALL}")

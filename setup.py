"""Builds the native module `bpe_beam._native`; everything else stands in pyproject.toml."""

import sys
from pathlib import Path
from typing import NoReturn

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CompileError, LinkError

NATIVE = Path("bpe_beam/native")
MOST_SHOWN = 200


class BuildNative(build_ext):  # type: ignore[misc]
    """Compiles the kernels, and says what is missing when it cannot."""

    def build_extensions(self) -> None:
        # Not at the top: making a source archive needs neither pybind11 nor a compiler.
        try:
            import pybind11
        except ModuleNotFoundError:
            _fail("pybind11 is missing (pip brings it, unless it runs with --no-build-isolation)")
        for extension in self.extensions:
            extension.include_dirs.append(pybind11.get_include())
        try:
            super().build_extensions()
        except (BaseError, CompileError, LinkError, OSError) as error:
            text = str(error)
            _fail(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")


def _fail(reason: str) -> NoReturn:
    sys.exit(
        f"\nbpe-beam: the C++ module bpe_beam._native could not be compiled: {reason}\n"
        "bpe-beam needs a C++20 compiler (GCC 11 or Clang 14 and later) and Python's headers.\n"
        "  Debian, Ubuntu:  apt-get install g++ python3-dev\n"
        "  Fedora, RHEL:    dnf install gcc-c++ python3-devel\n"
        "  macOS:           xcode-select --install\n"
        "The variables CC and CXX choose another compiler.\n"
    )


setup(
    ext_modules=[
        Extension(
            "bpe_beam._native",
            sources=[str(NATIVE / "module.cpp")],
            depends=sorted(str(path) for path in NATIVE.glob("*.hpp")),
            language="c++",
            extra_compile_args=["-std=c++20", "-O3", "-g0", "-fvisibility=hidden"],
        )
    ],
    cmdclass={"build_ext": BuildNative},
)

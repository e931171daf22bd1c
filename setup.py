"""Builds the native module `bpe_beam._native`; everything else stands in pyproject.toml."""

import sys
from pathlib import Path

from pybind11.setup_helpers import Pybind11Extension, build_ext
from setuptools import setup
from setuptools.errors import CompileError, ExecError, PlatformError

NATIVE = Path("bpe_beam/native")


class BuildNative(build_ext):  # type: ignore[misc]
    """Compiles the kernels, and says what is missing when it cannot."""

    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except (CompileError, ExecError, PlatformError, OSError) as error:
            sys.exit(
                "\nbpe-beam: the C++ module bpe_beam._native could not be compiled: "
                f"{error}\n"
                "bpe-beam needs a C++20 compiler (GCC 11 or Clang 14 and later) and Python's headers.\n"
                "  Debian, Ubuntu:  apt-get install g++ python3-dev\n"
                "  Fedora, RHEL:    dnf install gcc-c++ python3-devel\n"
                "  macOS:           xcode-select --install\n"
                "The variables CC and CXX choose another compiler.\n"
            )


setup(
    ext_modules=[
        Pybind11Extension(
            "bpe_beam._native",
            sources=[str(NATIVE / "module.cpp")],
            depends=sorted(str(path) for path in NATIVE.glob("*.hpp")),
            cxx_std=20,
            extra_compile_args=["-O3", "-fvisibility=hidden"],
        )
    ],
    cmdclass={"build_ext": BuildNative},
)

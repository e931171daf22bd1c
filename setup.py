"""Builds the native module `bpe_beam._native`; everything else stands in pyproject.toml."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CompileError, LinkError

NATIVE = Path("bpe_beam/native")
PYBIND11 = "pybind11>=2.13,<4"
MOST_SHOWN = 200


class BuildNative(build_ext):  # type: ignore[misc]
    """Compiles the kernels, and says what is missing when it cannot."""

    def build_extensions(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for extension in self.extensions:
                extension.include_dirs.append(_pybind11_headers(folder))
            try:
                super().build_extensions()
            except (BaseError, CompileError, LinkError, OSError) as error:
                text = str(error)
                _fail(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")


def _pybind11_headers(folder: str) -> str:
    """Where pybind11's headers are: those that are installed, else fetched to a folder.

    Beam's workers install what --setup_file packed without build isolation, and their image has a
    compiler but no pybind11.
    """
    # Not at the top: making a source archive needs neither pybind11 nor a compiler.
    try:
        import pybind11
    except ModuleNotFoundError:
        install = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--no-deps",
            "--no-user",
            "--target",
            folder,
            PYBIND11,
        ]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            _fail(f"pybind11 is missing, and {' '.join(install[1:])} failed: {done.stderr.strip()}")
        return str(Path(folder, "pybind11", "include"))
    return str(pybind11.get_include())


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
            sources=[str(NATIVE / "bind" / "module.cpp")],
            include_dirs=[str(NATIVE)],
            depends=sorted(str(path) for path in NATIVE.rglob("*.hpp")),
            language="c++",
            extra_compile_args=["-std=c++20", "-O3", "-g0", "-fvisibility=hidden"],
        )
    ],
    cmdclass={"build_ext": BuildNative},
)

"""Builds the native module `bpe_beam._native`; everything else is in pyproject.toml."""

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NoReturn

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CompileError, LinkError

NATIVE = Path("bpe_beam/native")
NANOBIND = "nanobind>=3.1,<4"
FLAGS = ["-std=c++20", "-O3", "-g0", "-fvisibility=hidden", "-DNDEBUG", "-DNB_COMPACT_ASSERTIONS"]
FLAGS_OF_UNITS = {
    # It reads Python's structs through pointers of other types. With -Os a call takes as long as
    # with -O3.
    "nanobind": ["-fno-strict-aliasing", "-Os"],
    # Its doubles are equal on all processors only if no multiplication and addition are one.
    "bind_unigram": ["-ffp-contract=off"],
}
MAX_SHOWN = 200
COMPILER_MEMORY = 700 << 20  # bytes, more than the largest unit takes

# One build serves Python 3.12 and every later version, where Python has a stable ABI for it.
STABLE_ABI = (
    sys.version_info >= (3, 12)
    and sys.implementation.name == "cpython"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
# nanobind needs stdio.h, which Python.h brings only without the stable ABI.
FLAGS += ["-include", "cstdio"]


class BuildNative(build_ext):  # type: ignore[misc]
    """Compiles the units that changed, on all cores, and says what is missing if it cannot."""

    force: bool

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.editable_mode:  # pip's own folder is new each time, and would have no objects
            tag = f"{self.plat_name}-{sys.implementation.cache_tag}"
            self.build_temp = str(Path("build", f"temp.{tag}"))

    def build_extensions(self) -> None:
        if sys.byteorder != "little":
            _fail("bpe-beam runs on little-endian machines only")
        nanobind = _nanobind()
        for extension in self.extensions:
            for headers in ("include", "src", "ext/robin_map/include"):
                extension.extra_compile_args += ["-isystem", str(nanobind / headers)]
        sizes = sorted((path.name, path.stat().st_size) for path in nanobind.rglob("*.[ch]*"))
        command = [*self.compiler.compiler_so, *self.compiler.compiler_so_cxx]
        built_with = repr((command, FLAGS, FLAGS_OF_UNITS, sys.version, sizes))
        # Objects of another compiler, Python or nanobind are in another folder.
        name = hashlib.sha256(built_with.encode()).hexdigest()[:12]
        self.build_temp = str(Path(self.build_temp, name))
        self.compiler.compile = partial(self._compile, self.compiler.compile, self.force)
        self.force = True  # to link is cheap
        try:
            super().build_extensions()
        except (BaseError, CompileError, LinkError, OSError) as error:
            text = str(error)
            _fail(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}...")

    def _compile(self, compile_all, force, sources, output_dir, **arguments):  # type: ignore
        """Compile in parallel the sources whose objects are older than a file they include."""
        objects = self.compiler.object_filenames(sources, output_dir=output_dir)
        old = [
            source
            for source, compiled in zip(sources, map(Path, objects), strict=True)
            if force
            or not compiled.exists()
            or any(path.stat().st_mtime >= compiled.stat().st_mtime for path in _includes(source))
        ]

        def compile_one(source: str) -> None:
            flags = FLAGS_OF_UNITS.get(Path(source).stem, [])
            last = [*arguments["extra_postargs"], *flags]  # after FLAGS, as the last -O counts
            compile_all([source], output_dir, **(arguments | {"extra_postargs": last}))

        with ThreadPoolExecutor(self.parallel or _processes()) as pool:
            list(pool.map(compile_one, old))
        return objects


def _includes(source: str) -> set[Path]:
    """Return a source and the files of `NATIVE` that it includes, also through others."""
    reached: set[Path] = set()
    waiting = [Path(source)]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            names = re.findall(r'^#include "(.+)"$', path.read_text("utf-8"), re.MULTILINE)
            waiting += [NATIVE / name for name in names]
    return reached


def _processes() -> int:
    """Return how many compilers may run at once: one a core, as far as the memory suffices."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")  # of a container
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        memory = min(memory, int(text))
    return max(1, min(os.cpu_count() or 1, memory // COMPILER_MEMORY))


def _nanobind() -> Path:
    """Return the folder of nanobind's sources: the installed one, or one fetched below `build`.

    Beam's workers install what --setup_file packed without build isolation, and their image has a
    compiler but no nanobind.
    """
    # Not at the top: making a source archive needs neither nanobind nor a compiler.
    try:
        import nanobind
    except ModuleNotFoundError:
        folder = Path("build", re.sub(r"\W+", "-", NANOBIND))
        if not folder.exists():
            install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-user", "--target"]
            install += [str(folder), NANOBIND]
            done = subprocess.run(install, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                command = " ".join(install[1:])
                _fail(f"nanobind is missing, and {command} failed: {done.stderr.strip()}")
        return folder / "nanobind"
    return Path(nanobind.include_dir()).parent


def _version() -> str:
    """Return the version of git's newest tag, vMAJOR.MINOR.PATCH, or a development version.

    Own code, since a library for this would have to be on Beam's workers, too.
    """
    packed = Path("PKG-INFO")  # of a source archive, which has no tags
    if packed.exists() and (line := re.search(r"^Version: (.+)$", packed.read_text("utf-8"), re.M)):
        return line[1]
    describe = ["git", "describe", "--tags", "--long", "--match", "v[0-9]*"]
    try:
        described = subprocess.run(describe, capture_output=True, text=True, check=False).stdout
    except OSError:
        described = ""
    tag = re.fullmatch(r"v(\d+\.\d+\.)(\d+)-(\d+)-(g[0-9a-f]+)\n", described)
    if tag is None:
        return "0.0.0.dev0"
    release, patch, commits, commit = tag.groups()
    return (
        f"{release}{patch}"
        if commits == "0"
        else f"{release}{int(patch) + 1}.dev{commits}+{commit}"
    )


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
    version=_version(),
    ext_modules=[
        Extension(
            "bpe_beam._native",
            sources=sorted(str(path) for path in NATIVE.rglob("*.cpp")),
            include_dirs=[str(NATIVE)],
            depends=sorted(str(path) for path in NATIVE.rglob("*.hpp")),
            language="c++",
            extra_compile_args=[*FLAGS],
            define_macros=[("Py_LIMITED_API", "0x030C0000")] if STABLE_ABI else [],
            py_limited_api=STABLE_ABI,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp312"}} if STABLE_ABI else {},
    cmdclass={"build_ext": BuildNative},
)

"""Checks of the machine and of the package: cores, memory, disk, Python, packages, native code."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

from bpe_beam.engines.run import default_workers
from bpe_beam.jobs.doctor.checks import PACKAGE, Outcome, PlannedCheck, unmet, version_of
from bpe_beam.messages import format_bytes, list_few

_MIN_FREE_BYTES = 10**9  # free memory or free disk space below this is worth a remedy

_FEATURES = ("ssse3", "avx2")  # features of processors that native code uses if they exist

_CPU_INFO = Path("/proc/cpuinfo")
_MEMORY_INFO = Path("/proc/meminfo")
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def checks() -> Iterator[PlannedCheck]:
    """Yield the checks of the machine, then of the package."""
    yield "machine", "processor", _processor
    yield "machine", "memory", _memory
    yield "machine", "disk, current folder", partial(_disk, ".")
    yield "machine", "disk, temporary files", partial(_disk, tempfile.gettempdir())
    yield "package", "Python", _python
    yield "package", PACKAGE, _package
    yield "package", "native code", _native


def _processor() -> Outcome:
    """Return the cores, and the features that native code uses."""
    cores = f"{default_workers()} cores, {platform.machine()}"
    if platform.machine() not in ("x86_64", "AMD64") or not _CPU_INFO.exists():
        return "works", f"{cores}; native code without AVX2"
    line = next((s for s in _CPU_INFO.read_text().splitlines() if s.startswith("flags")), "")
    used = [feature for feature in _FEATURES if feature in line.split()]
    lacking = [feature for feature in _FEATURES if feature not in used]
    remedy = f"scanning text is slower without {', '.join(lacking)}" if lacking else None
    return "works", f"{cores}; native code uses {', '.join(used) or 'no special feature'}", remedy


def _memory() -> Outcome:
    """Return the memory that processes may use, as far as the system reports it."""
    sizes: dict[str, int] = {}
    if _MEMORY_INFO.exists():
        for line in _MEMORY_INFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if value.endswith(" kB"):
                sizes[name] = int(value.removesuffix(" kB")) * 1024
    if "MemAvailable" not in sizes:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return "works", format_bytes(total)
    free = sizes["MemAvailable"]
    result = f"{format_bytes(free)} of {format_bytes(sizes['MemTotal'])} are free"
    limit = _GROUP_LIMIT.read_text().strip() if _GROUP_LIMIT.exists() else "max"
    if limit.isdecimal() and int(limit) < sizes["MemTotal"]:
        result += f"; the limit of this container is {format_bytes(int(limit))}"
        free = min(free, int(limit))
    remedy = (
        "give fewer --workers and a smaller --driver-memory" if free < _MIN_FREE_BYTES else None
    )
    return "works", result, remedy


def _disk(folder: str) -> Outcome:
    """Return the free space of a folder, after a test that it can be written."""
    usage = shutil.disk_usage(folder)
    result = f"{format_bytes(usage.free)} are free in {Path(folder).resolve()}"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        problem = f"cannot write in {Path(folder).resolve()}: {error.strerror}"
        if folder == ".":
            return "missing", problem, "write outputs elsewhere"
        return "fails", problem, "set TMPDIR to a folder with space"
    remedy = "free some space, or choose another folder" if usage.free < _MIN_FREE_BYTES else None
    return "works", result, remedy


def _python() -> Outcome:
    from packaging.specifiers import SpecifierSet

    version = platform.python_version()
    result = f"{version} in {sys.prefix}"
    if version_of(PACKAGE) is not None:
        wanted = str(metadata.metadata(PACKAGE)["Requires-Python"] or "")
        if not SpecifierSet(wanted).contains(version, prereleases=True):
            return "fails", result, f"use a Python {wanted}"
    return "works", result


def _package() -> Outcome:
    version = version_of(PACKAGE)
    if version is None:
        return "unknown", "a source tree that is not installed", "pip install -e ."
    if lacking := unmet(PACKAGE):
        return "fails", f"{version} lacks {list_few(lacking)}", f"pip install --upgrade {PACKAGE}"
    names = ("apache-beam", "pyarrow", "numpy", "fsspec")
    others = ", ".join(f"{name} {version_of(name)}" for name in names)
    return "works", f"{version}; {others}"


def _native() -> Outcome:
    """Encode a word by the native code."""
    try:
        from bpe_beam.tokenizer.tokenizer import Tokenizer

        ids = Tokenizer.from_learned(["a", "b", "ab"], [("a", "b")]).encode("abb")
    except ImportError as error:
        remedy = f"install again: pip install --force-reinstall --no-deps {PACKAGE}"
        return "fails", str(error), remedy
    if ids != [2, 1]:
        return "fails", f"gives the ids {ids}, expected [2, 1]"
    return "works", "loads, and encodes"

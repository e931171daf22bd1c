"""Checks of the machine and of the package: cores, memory, disk, Python, packages, native code."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from bpe_beam.engines.local import default_workers
from bpe_beam.jobs.doctor.checks import PACKAGE, Check, unmet, version_of
from bpe_beam.messages import format_bytes, list_few

_MIN_FREE_BYTES = 10**9
"""Free memory or free disk space below this is worth a remedy."""

_FEATURES = ("ssse3", "avx2")
"""Features of processors that native code uses if they exist."""

_CPU_INFO = Path("/proc/cpuinfo")
_MEMORY_INFO = Path("/proc/meminfo")
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def checks() -> Iterator[tuple[str, str, Callable[[], Check]]]:
    """Yield the area, the name and the function of each check."""
    yield "machine", "processor", _processor
    yield "machine", "memory", _memory
    folders = {"disk, current folder": ".", "disk, temporary files": tempfile.gettempdir()}
    for name, folder in folders.items():
        yield "machine", name, lambda name=name, folder=folder: _disk(name, folder)  # type: ignore[misc]
    yield "package", "Python", _python
    yield "package", PACKAGE, _package
    yield "package", "native code", _native


def _processor() -> Check:
    """Return the cores, and the features that native code uses."""
    cores = f"{default_workers()} cores, {platform.machine()}"
    if platform.machine() not in ("x86_64", "AMD64") or not _CPU_INFO.exists():
        return Check("machine", "processor", "works", f"{cores}; native code without AVX2")
    line = next((s for s in _CPU_INFO.read_text().splitlines() if s.startswith("flags")), "")
    used = [feature for feature in _FEATURES if feature in line.split()]
    lacking = [feature for feature in _FEATURES if feature not in used]
    result = f"{cores}; native code uses {', '.join(used) or 'no special feature'}"
    remedy = f"scanning text is slower without {', '.join(lacking)}" if lacking else None
    return Check("machine", "processor", "works", result, remedy)


def _memory() -> Check:
    """Return the memory that processes may use, as far as the system reports it."""
    sizes: dict[str, int] = {}
    if _MEMORY_INFO.exists():
        for line in _MEMORY_INFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if value.endswith(" kB"):
                sizes[name] = int(value.removesuffix(" kB")) * 1024
    if "MemAvailable" not in sizes:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Check("machine", "memory", "works", format_bytes(total))
    free = sizes["MemAvailable"]
    result = f"{format_bytes(free)} of {format_bytes(sizes['MemTotal'])} are free"
    limit = _GROUP_LIMIT.read_text().strip() if _GROUP_LIMIT.exists() else "max"
    if limit.isdecimal() and int(limit) < sizes["MemTotal"]:
        result += f"; the limit of this container is {format_bytes(int(limit))}"
        free = min(free, int(limit))
    remedy = (
        "give fewer --workers and a smaller --driver-memory" if free < _MIN_FREE_BYTES else None
    )
    return Check("machine", "memory", "works", result, remedy)


def _disk(name: str, folder: str) -> Check:
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
            return Check("machine", name, "missing", problem, "write outputs elsewhere")
        return Check("machine", name, "fails", problem, "set TMPDIR to a folder with space")
    remedy = "free some space, or choose another folder" if usage.free < _MIN_FREE_BYTES else None
    return Check("machine", name, "works", result, remedy)


def _python() -> Check:
    from packaging.specifiers import SpecifierSet

    version = platform.python_version()
    result = f"{version} in {sys.prefix}"
    if version_of(PACKAGE) is not None:
        wanted = str(metadata.metadata(PACKAGE)["Requires-Python"] or "")
        if not SpecifierSet(wanted).contains(version, prereleases=True):
            return Check("package", "Python", "fails", result, f"use a Python {wanted}")
    return Check("package", "Python", "works", result)


def _package() -> Check:
    version = version_of(PACKAGE)
    if version is None:
        result = "a source tree that is not installed"
        return Check("package", PACKAGE, "unknown", result, "pip install -e .")
    lacking = unmet(PACKAGE)
    if lacking:
        result = f"{version} lacks {list_few(lacking)}"
        return Check("package", PACKAGE, "fails", result, f"pip install --upgrade {PACKAGE}")
    names = ("apache-beam", "pyarrow", "numpy", "fsspec")
    others = ", ".join(f"{name} {version_of(name)}" for name in names)
    return Check("package", PACKAGE, "works", f"{version}; {others}")


def _native() -> Check:
    """Encode a word by the native code."""
    try:
        from bpe_beam.tokenizer.tokenizer import Tokenizer

        ids = Tokenizer.from_learned(["a", "b", "ab"], [("a", "b")]).encode("abb")
    except ImportError as error:
        remedy = "install again: pip install --force-reinstall --no-deps bpe-beam"
        return Check("package", "native code", "fails", str(error), remedy)
    if ids != [2, 1]:
        return Check("package", "native code", "fails", f"gives the ids {ids}, expected [2, 1]")
    return Check("package", "native code", "works", "loads, and encodes")

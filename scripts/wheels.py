"""Build, check and test the wheels of a release for Linux, without a service or containers.

    python scripts/wheels.py build DIST [--machines x86_64 aarch64] [--pythons 3.11 3.12]
    python scripts/wheels.py test DIST [--machines x86_64 aarch64] [--pythons 3.11 3.13 3.14]

`build` makes the source archive, and wheels of it for glibc 2.28 and later: one for each Python
before 3.12, and one with the stable ABI for all later ones. Zig's Clang compiles them, for both
machines, with libc++ inside. It needs GCC (for libgcc), and Python's headers of each version.

`test` installs a wheel in a new environment without a compiler, runs the quickstart and the quick
tests from the source archive, and prints the hash of what a job of fixed input writes, which must
be the same everywhere. Wheels of another machine run under qemu; this needs Debian's packages
qemu-user and g++-aarch64-linux-gnu.

.github/workflows/wheels.yml builds the wheels for other systems.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import get_python
from get_runners import Missing, kept_or_built

TOOLS = (
    "abi3audit>=0.0.20,<0.1",
    "auditwheel>=6.4,<7",
    "build>=1.2,<2",
    "twine>=6,<7",
    "uv>=0.9,<1",
    "ziglang==0.17.1",
)
BUILD_REQUIREMENTS = ("setuptools>=77", "nanobind>=3.1,<4")
TEST_REQUIREMENTS = ("pytest>=8,<10", "pytest-xdist>=3.6,<4")
GLIBC = "2.28"
MAXIMUM_BYTES = 3_000_000
FIRST_ABI3 = (3, 12)
DEBIAN = {"aarch64": "arm64", "x86_64": "amd64"}
LIBRARIES = ("libc6", "libgcc-s1", "libstdc++6", "zlib1g")
"""What wheels may take from the system, and packages that they need do."""
HERE = platform.machine()
ROOT = Path(__file__).parents[1]


def build(dist: Path, machines: list[str], pythons: list[str]) -> None:
    """Make the source archive and the wheels in `dist`, and check them."""
    tools = _tools()
    dist.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        _run([tools / "python", "-m", "build", "-q", "--sdist", "--outdir", dist, ROOT])
        sources = _unpacked(_archive(dist), Path(work))
        for version in pythons:
            environment = Path(work, f"python-{version}")
            _environment(tools, environment, version, BUILD_REQUIREMENTS)
            for machine in machines:
                _build_wheel(tools, environment, sources, dist, version, machine)
    _run([tools / "python", "-m", "twine", "check", "--strict", *dist.iterdir()])


def _build_wheel(
    tools: Path, environment: Path, sources: Path, dist: Path, version: str, machine: str
) -> None:
    started = time.monotonic()
    python = environment / "bin" / "python"
    shutil.rmtree(sources / "build", ignore_errors=True)  # has the module of another machine
    tag = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
    with tempfile.TemporaryDirectory() as made:
        arguments = ["setup.py", "-q", "bdist_wheel", "--plat-name", tag, "--dist-dir", made]
        _run([python, *arguments], sources, _compilers(tools, version, machine))
        (name,) = (path.name for path in Path(made).iterdir())
        shutil.move(Path(made, name), dist / name)
    shown = _run([tools / "python", "-m", "auditwheel", "show", dist / name])
    fits = re.search(rf'platform tag:\s+"manylinux_(\d+_\d+)_{machine}"', shown)
    if fits is None or _numbers(fits[1]) > _numbers(GLIBC):
        raise Missing(f"{name} needs a newer glibc or another library:\n{shown}")
    size = (dist / name).stat().st_size
    if size > MAXIMUM_BYTES:
        raise Missing(f"{name} has {size:,} bytes, more than {MAXIMUM_BYTES:,}")
    if "abi3" in name:
        _run([tools / "python", "-m", "abi3audit", "--strict", dist / name])
    print(f"{name}: {size:,} bytes, {time.monotonic() - started:.0f} s", flush=True)


def _compilers(tools: Path, version: str, machine: str) -> dict[str, str]:
    """Return the variables by which setuptools compiles for a machine and for an old glibc."""
    zig = [str(next(tools.parent.glob("lib/*/site-packages/ziglang/zig")))]
    target = ["-target", f"{machine}-linux-gnu.{GLIBC}"]
    link = ["-shared", "-s"]
    libraries = []
    if machine == "x86_64":
        # Zig's own __builtin_cpu_supports answers no to all: each vector kernel would be skipped.
        gcc = ["gcc", "-print-libgcc-file-name"]
        libraries = [subprocess.run(gcc, capture_output=True, text=True, check=True).stdout.strip()]
    variables = {
        "CC": shlex.join([*zig, "cc", *target]),
        "CXX": shlex.join([*zig, "c++", *target]),
        "LDSHARED": shlex.join([*zig, "cc", *target, *link]),
        "LDCXXSHARED": shlex.join([*zig, "c++", *target, *link]),
        "LDFLAGS": shlex.join(libraries),
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
    }
    if _numbers(version) < FIRST_ABI3:
        tag = f"cpython-{version.replace('.', '')}-{machine}-linux-gnu"
        variables["SETUPTOOLS_EXT_SUFFIX"] = f".{tag}.so"
    return variables


def test(dist: Path, machines: list[str], pythons: list[str]) -> None:
    """Install and use the wheels of `dist`.

    Raises:
        Missing: If a test fails, or a job writes other bytes than on another machine or Python.
    """
    tools = _tools()
    hashes = {}
    with tempfile.TemporaryDirectory() as work:
        for machine in machines:
            for version in pythons:
                name = f"Python {version}, {machine}"
                print(f"== {name}", flush=True)
                folder = _unpacked(_archive(dist), Path(work, f"{version}-{machine}"))
                shutil.rmtree(folder / "bpe_beam")  # what is tested is what was installed
                wheel = _wheel_for(dist, version, machine)
                started = time.monotonic()
                python, env = _installed(tools, folder, wheel, version, machine)
                print(f"{wheel.name} installed in {time.monotonic() - started:.0f} s", flush=True)
                _run([python, "-m", "bpe_beam", "quickstart"], folder, env)
                hashes[name] = _hash_of_a_job(python, folder, env)
                print(f"the job wrote {hashes[name]}", flush=True)
                _run([python, "-m", "pytest", "-q", "-m", "quick", "-n", "2"], folder, env)
    for name, found in hashes.items():
        print(f"{found}  {name}")
    if len(set(hashes.values())) > 1:
        raise Missing("the job wrote different bytes")


def _installed(
    tools: Path, folder: Path, wheel: Path, version: str, machine: str
) -> tuple[Path, dict[str, str]]:
    """Return a Python with the wheel and what the tests need, and its variables."""
    packages = [wheel, *TEST_REQUIREMENTS]
    without = {"CC": "false", "CXX": "false"}
    if machine == HERE:
        _environment(tools, folder / ".venv", version, packages, without)
        return folder / ".venv" / "bin" / "python", without
    site = folder / "site"
    system = f"{machine}-manylinux_{GLIBC.replace('.', '_')}"
    target = ["--target", site, "--python-version", version, "--python-platform", system]
    _run([tools / "uv", "pip", "install", "-q", *target, *packages], env=without)
    program = get_python.python(version, machine)
    # A script with its variables: the kernel knows no program of this machine, and tests start it
    # again in environments of their own.
    python = folder / "python"
    emulator = shutil.which(f"qemu-{machine}")
    if emulator is None:
        raise Missing(f"there is no qemu-{machine}: install qemu-user")
    python.write_text(
        f"#!/bin/sh\nexport PYTHONHOME={program.parents[1]}\n"
        f"export PYTHONPATH={site}${{PYTHONPATH:+:$PYTHONPATH}}\n"
        f'exec {emulator} -L {_system(machine)} -0 "$0" {program} "$@"\n'
    )
    python.chmod(0o755)
    return python, without


def _system(machine: str) -> Path:
    """Return a folder with the libraries of another machine's Debian."""

    def unpack(name: str, half: Path) -> Path:
        packages = [f"{library}:{DEBIAN[machine]}" for library in LIBRARIES]
        try:
            _run(["apt-get", "download", "-q", *packages], half)
        except Missing as error:
            way = f"dpkg --add-architecture {DEBIAN[machine]} && apt-get update"
            raise Missing(f"{error}\nFirst, as root: {way}") from None
        for package in half.glob("*.deb"):
            _run(["dpkg", "-x", package, half / "root"])
        return half / "root"

    return kept_or_built(f"debian-{machine}", unpack)


def _hash_of_a_job(python: Path, folder: Path, env: dict[str, str]) -> str:
    """Return the hash of a tokenizer and shards of the archive's own texts."""
    texts = sorted(map(str, (folder / "docs").glob("*.md")))
    job = [python, "-m", "bpe_beam"]
    _run(
        [*job, "train", "--input", *texts, "--vocab-size", "2000", "--output", "tokenizer"],
        folder,
        env,
    )
    _run(
        [*job, "tokenize", "--input", *texts, "--tokenizer", "tokenizer", "--output", "tokens"],
        folder,
        env,
    )
    total = hashlib.sha256((folder / "tokenizer" / "tokenizer.json").read_bytes())
    for path in sorted((folder / "tokens").rglob("*")):
        if path.suffix in (".bin", ".idx"):
            total.update(path.read_bytes())
    return total.hexdigest()


def _wheel_for(dist: Path, version: str, machine: str) -> Path:
    abi3 = _numbers(version) >= FIRST_ABI3
    name = "cp312-abi3" if abi3 else "cp{0}-cp{0}".format(version.replace(".", ""))
    wheels = sorted(dist.glob(f"bpe_beam-*-{name}-manylinux_*_{machine}.whl"))
    if len(wheels) != 1:
        raise Missing(f"{dist} must have one wheel {name} for {machine}, has {len(wheels)}")
    return wheels[0].absolute()


def _archive(dist: Path) -> Path:
    archives = list(dist.glob("bpe_beam-*.tar.gz"))
    if len(archives) != 1:
        raise Missing(f"{dist} must have one source archive, has {len(archives)}: empty it first")
    return archives[0]


def _unpacked(archive: Path, work: Path) -> Path:
    with tarfile.open(archive) as files:
        files.extractall(work, filter="data")
    return work / archive.name.removesuffix(".tar.gz")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.split(r"[._]", version)))


def _tools() -> Path:
    """Return the folder with the Python of TOOLS, and with those that are programs."""

    def make(name: str, half: Path) -> Path:
        _run([sys.executable, "-m", "venv", half / "tools"])
        _run([half / "tools" / "bin" / "python", "-m", "pip", "install", "-q", *TOOLS])
        return half / "tools"

    key = hashlib.sha256(" ".join([sys.version, *TOOLS]).encode()).hexdigest()[:12]
    return kept_or_built(f"wheel-tools-{key}", make) / "bin"


def _environment(
    tools: Path,
    folder: Path,
    version: str,
    packages: tuple[str, ...] | list[object],
    env: dict[str, str] | None = None,
) -> None:
    """Make an environment with packages."""
    _run([tools / "uv", "venv", "-q", folder, "--python", _python(version)])
    install = [tools / "uv", "pip", "install", "-q", "--python", folder / "bin" / "python"]
    _run([*install, *packages], env=env)


def _python(version: str) -> str:
    """Return a Python of this machine, or else one that Go brings. A shim of pyenv may not run."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    for candidate in (f"python{version}", *map(str, pyenv.glob(f"{version}.*/bin/python"))):
        program = shutil.which(candidate)
        if program and subprocess.run([program, "-c", ""], capture_output=True).returncode == 0:
            return program
    if version not in get_python.RELEASES:
        raise Missing(f"there is no Python {version}")
    return str(get_python.python(version))


def _run(command: list[object], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command, and return its output; the output of tests is shown.

    Raises:
        Missing: If it fails.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=None if "pytest" in words else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Missing(f"{shlex.join(words)} failed:\n{(done.stdout or '')[-3000:]}")
    return done.stdout or ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, pythons in (("build", ["3.11", "3.12"]), ("test", ["3.11", "3.13", "3.14"])):
        action = actions.add_parser(name, help=f"see above; --pythons {' '.join(pythons)}")
        action.add_argument("dist", type=Path, help="the folder of the archive and the wheels")
        machines = ["x86_64", "aarch64"] if name == "build" else [HERE]
        action.add_argument("--machines", nargs="+", default=machines, metavar="M")
        action.add_argument("--pythons", nargs="+", default=pythons, metavar="V")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = _arguments()
    try:
        run = build if chosen.action == "build" else test
        run(chosen.dist.absolute(), chosen.machines, chosen.pythons)
    except Missing as error:
        sys.exit(f"wheels.py: {error}")

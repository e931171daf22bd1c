"""Build what Beam's runners need and no package has, from released parts.

`runners.py` uses it. Everything is stored in `$BPE_BEAM_CACHE/runners`, by default
`~/.cache/bpe-beam/runners`, in a folder a version, and built again where that is missing. Maven, Go
and pip download what they need as they are configured.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

POM = Path(__file__).parent / "runners" / "pom.xml"
FLINK = "1.19.3"
GO = "1.26.8"
"""The toolchain that an old Go downloads."""
JAVA = 17
BUILD_SECONDS = 1800
PARTS = ("flink-job-server", "spark-job-server", "prism", "boot", "flink")


class Missing(Exception):
    """A program that is missing on this machine, or a build that failed."""


def get(part: str) -> Path:
    """Return a part; build it if it is missing.

    Args:
        part: One of PARTS. The job servers are jars; `prism` and `boot` (which starts Python
            workers on a cluster) programs; `flink` a folder with a cluster's jars.

    Returns:
        Where it is.

    Raises:
        Missing: If a program is missing or the build fails; the message says what to install.

    Cost: up to three minutes and half a gigabyte on disk, once.
    """
    if part in ("flink-job-server", "spark-job-server"):
        name = f"{part}-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}.jar"
        return kept_or_built(name, _job_server)
    if part == "flink":
        return kept_or_built(f"flink-{FLINK}", _flink)
    name = f"{part}-{beam_version()}"
    return kept_or_built(name, _go_program)


def cache() -> Path:
    """Return the folder of all parts."""
    chosen = os.environ.get("BPE_BEAM_CACHE")
    top = Path(chosen) if chosen else Path.home() / ".cache" / "bpe-beam"
    return top.absolute() / "runners"


def beam_version() -> str:
    """Return the version of Beam that this Python has; programs are built for it."""
    try:
        return metadata.version("apache-beam")
    except metadata.PackageNotFoundError:
        raise Missing(
            f"{sys.executable} has no apache-beam: run this with the Python of the environment "
            "that bpe-beam is installed in"
        ) from None


def java() -> str:
    """Return the path of a Java that is new enough.

    Raises:
        Missing: If there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java_path = shutil.which(f"{home}/bin/java" if home else "java")
    wanted = f"Java {JAVA} is needed (Debian, Ubuntu: apt-get install openjdk-17-jre-headless)"
    if java_path is None:
        raise Missing(f"there is no java: {wanted}")
    said = run([java_path, "-XshowSettings:properties", "-version"])
    versions = [line for line in said.splitlines() if "java.specification.version" in line]
    version = versions[0].rpartition("=")[2].strip() if versions else "unknown"
    if version.startswith("1.") or not version.isdigit() or int(version) < JAVA:
        raise Missing(f"{java_path} is Java {version}: {wanted}")
    return java_path


def kept_or_built(name: str, build: Callable[[str, Path], Path]) -> Path:
    """Return a file or folder of the cache; build it if it is missing.

    It is built under a lock, next to the final path, and renamed: a killed build has no final path.
    """
    target, half = cache() / name, cache() / f"{name}.half"
    if target.exists():
        return target
    with _locked(name):
        if not target.exists():
            print(f"building {name}; this may take some minutes", file=sys.stderr, flush=True)
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir(parents=True)
            build(name, half).rename(target)
            shutil.rmtree(half, ignore_errors=True)
    return target


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _job_server(name: str, half: Path) -> Path:
    """Build one jar, of the profile that the name begins with."""
    java()
    mvn = shutil.which("mvn")
    if mvn is None:
        raise Missing("there is no mvn: install Maven (Debian, Ubuntu: apt-get install maven)")
    profile = name.partition("-")[0]
    target = f"-Dtarget={half / 'target'}"
    run([mvn, "-q", "-B", "-f", str(POM), "-P", profile, target, "package"])
    return half / "target" / "job-server.jar"


def _flink(name: str, half: Path) -> Path:
    """Copy the jars of a Flink cluster out of Flink's Python package."""
    package = "apache-flink-libraries"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", package]
    run([*pip, "--dest", str(half), f"{package}=={name.partition('-')[2]}"])
    (archive,) = half.glob("*.tar.gz")
    lib = half / "lib"
    lib.mkdir()
    with tarfile.open(archive) as files:
        for file in files:
            path = Path(file.name)
            if path.suffix == ".jar" and path.parts[-3:-1] == ("deps", "lib"):
                source = files.extractfile(file)
                assert source is not None
                with source, (lib / path.name).open("wb") as out:
                    shutil.copyfileobj(source, out)
    return lib


def _go_program(name: str, half: Path) -> Path:
    program, _, version = name.rpartition("-")
    package = {"prism": "go/cmd/prism", "boot": "python/container"}[program]
    module = f"github.com/apache/beam/sdks/v2/{package}@v{version}"
    run([go(), "install", module], {"GOBIN": str(half)})
    (built,) = half.iterdir()
    return built


def go() -> str:
    """Return a Go that downloads the toolchain of a module; old ones need a setting."""
    program = shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin")
    if program is None:
        raise Missing("there is no go: install Go (Debian, Ubuntu: apt-get install golang-go)")
    release, system, machine = run([program, "env", "GOVERSION", "GOOS", "GOARCH"]).split()
    if int(release.split(".")[1]) >= 21:
        return program
    toolchain = f"golang.org/toolchain@v0.0.1-go{GO}.{system}-{machine}"
    folder = Path(json.loads(run([program, "mod", "download", "-json", toolchain]))["Dir"])
    for tool in [*folder.glob("bin/*"), *folder.glob("pkg/tool/*/*")]:
        tool.chmod(0o755)
    return str(folder / "bin" / "go")


def run(command: list[str], env: dict[str, str] | None = None) -> str:
    """Run a command; return its stdout and, for java, its stderr.

    Raises:
        Missing: If it fails or takes too long.
    """
    shown = " ".join(command)
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{shown} took over {BUILD_SECONDS} s") from None
    if done.returncode != 0:
        raise Missing(f"{shown} failed:\n{(done.stdout + done.stderr)[-3000:].strip()}")
    return done.stdout + (done.stderr if "-version" in command else "")

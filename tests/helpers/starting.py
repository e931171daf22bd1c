"""Protocol servers for tests: found or built, started on loopback, stopped.

What is built is kept outside the tree, in `$BPE_BEAM_CACHE` or `~/.cache/bpe-beam/servers`, in a
folder a version. Go and Node bring it by their own clients. Where a server cannot be had, its tests
are skipped with the reason; in CI they fail.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

CACHE = Path(os.environ.get("BPE_BEAM_CACHE") or Path.home() / ".cache" / "bpe-beam" / "servers")
BUILD_SECONDS = 900
START_SECONDS = 300

GO_SERVERS = {
    "versitygw": ("github.com/versity/versitygw/cmd/versitygw", "1.8.0"),
    "fake-gcs-server": ("github.com/fsouza/fake-gcs-server", "1.56.1"),
    # An old one, which takes conditions of S3 and ignores them.
    "gofakes3": (
        "github.com/johannesboyne/gofakes3/cmd/gofakes3",
        "0.0.0-20230108161031-df26ca44a1e9",
    ),
    "server": ("github.com/Shopify/toxiproxy/v2/cmd/server", "2.12.0"),
}
"""Program: its module and version; `server` is toxiproxy's."""
GO = "1.26.8"
"""The toolchain that an old Go downloads."""
AZURITE = "3.35.0"


def missing(why: str) -> NoReturn:
    """End the test: skipped, or failed in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def go_server(program: str) -> str:
    """Return the path of a server written in Go; build it if it is missing."""
    module, version = GO_SERVERS[program]
    folder = CACHE / f"{module.replace('/', '_')}-{version}"
    with locked(folder):
        if not (folder / program).exists():
            _build([_go(), "install", f"{module}@v{version}"], {"GOBIN": str(folder)})
    return str(folder / program)


def _go() -> str:
    """Return a Go that downloads the toolchain that a module needs; old ones must be told to."""
    go = shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin")
    if go is None:
        missing("a server is not built, and there is no Go to build it")
    release, system, machine = _build([go, "env", "GOVERSION", "GOOS", "GOARCH"], {}).split()
    if int(release.split(".")[1]) >= 21:
        return go
    toolchain = f"golang.org/toolchain@v0.0.1-go{GO}.{system}-{machine}"
    folder = Path(json.loads(_build([go, "mod", "download", "-json", toolchain], {}))["Dir"])
    for program in [*folder.glob("bin/*"), *folder.glob("pkg/tool/*/*")]:
        program.chmod(0o755)
    return str(folder / "bin" / "go")


def azurite() -> list[str]:
    """Return the command of Azurite's blob server; install it if it is missing."""
    node = shutil.which("node")
    if node is None:
        missing("there is no Node to run Azurite")
    main = npm_package("azurite", AZURITE) / "dist" / "src" / "blob" / "main.js"
    return [node, str(main)]


def npm_package(name: str, version: str) -> Path:
    """Return the folder of a package of npm; install it if it is missing.

    Args:
        name: The package.
        version: Its version.
    """
    folder = CACHE / f"{name}-{version}"
    package = folder / "node_modules" / name
    with locked(folder):
        if not (package / "package.json").exists():
            npm = shutil.which("npm")
            if npm is None:
                missing(f"{name} is not installed, and there is no npm to install it")
            _build([npm, "install", "--prefix", str(folder), f"{name}@{version}"], {})
    return package


def _build(command: list[str], env: dict[str, str]) -> str:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        missing(f"{' '.join(command)} took over {BUILD_SECONDS} s")
    if done.returncode != 0:
        missing(f"{' '.join(command)} failed: {done.stderr[-1000:]}")
    return done.stdout


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a build, so that two runs of the tests do not build at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def started(command: Callable[[int], list[str]], folder: Path) -> Iterator[int]:
    """Run a server until the block ends; yield its port of loopback.

    Args:
        command: Returns the server and its arguments for a port.
        folder: Its working directory, which gets its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    process, port = _start(command, folder)
    try:
        yield port
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _start(
    command: Callable[[int], list[str]], folder: Path
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server; again if another program has taken the port meanwhile."""
    log = folder / "log"
    for _ in range(2):
        port = _free_port()
        with log.open("wb") as out:
            process = subprocess.Popen(
                command(port), cwd=folder, stdout=out, stderr=subprocess.STDOUT
            )
        end = time.monotonic() + START_SECONDS
        while process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return process, port
            if time.monotonic() > end:
                process.kill()
                missing(
                    f"{command(port)[0]} does not listen after {START_SECONDS} s: {_end_of(log)}"
                )
            time.sleep(0.05)
    missing(f"{command(port)[0]} ended at once: {_end_of(log)}")


def _free_port() -> int:
    """Return a port of loopback that no program listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-1000:]


def moto_command(port: int) -> list[str]:
    """Return the command of moto's S3 server."""
    return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]

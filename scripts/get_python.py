"""Unpack a CPython for tests, and print its path.

    python scripts/get_python.py [--version 3.14] [--machine arm64]

It is a module of Go, so whoever builds the runners can download it. It has no headers: packages
must come as wheels. It is kept where `runners.py` keeps its parts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import stat
import sys
from pathlib import Path

from get_runners import Missing, go, kept_or_built, run

MODULE = "github.com/kluctl/go-embed-python"
RELEASES = {"3.11": "3.11.11-20241219-1", "3.14": "3.14.6-20260610-1"}
MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "amd64": "amd64"}
_GO_LINK = 1 << 27  # the bit of a link in Go's modes


def python(version: str = "3.14", machine: str = platform.machine()) -> Path:
    """Return the program; download and unpack it if it is missing.

    Args:
        version: One of RELEASES.
        machine: One of MACHINES; a program for another machine than this one needs an emulator.

    Raises:
        Missing: If there is no Go, or the download fails.
    """
    name = f"python-{RELEASES[version]}-{sys.platform}-{MACHINES[machine]}"
    return kept_or_built(name, _unpack) / "bin" / f"python{version}"


def _unpack(name: str, half: Path) -> Path:
    release, system, machine = name.removeprefix("python-").rsplit("-", 2)
    answer = run([go(), "mod", "download", "-json", f"{MODULE}@v0.0.0-{release}"])
    source = Path(json.loads(answer)["Dir"], "python", "internal", "data", f"{system}-{machine}")
    target = half / "python"
    for file in json.loads((source / "files.json").read_text())["files"]:
        packed, path = source / file["name"], target / file["name"]
        mode = file["perm"]
        if packed.is_dir():
            path.mkdir(parents=True)
        elif mode & _GO_LINK:
            path.symlink_to(file["symlink"])
        else:
            compressed = file.get("compressed", False)
            data = Path(f"{packed}.gz").read_bytes() if compressed else packed.read_bytes()
            path.write_bytes(gzip.decompress(data) if compressed else data)
            path.chmod(stat.S_IMODE(mode))
    return target


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", default="3.14", choices=RELEASES)
    parser.add_argument("--machine", default=platform.machine(), choices=MACHINES)
    chosen = parser.parse_args()
    try:
        print(python(chosen.version, chosen.machine))
    except Missing as error:
        sys.exit(f"get_python.py: {error}")

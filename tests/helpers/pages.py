"""Pages of the docs: their blocks of commands and of Python, run as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import bpe_beam

# Installing is the work of .ci/run, which runs the same lines.
INSTALLS = "python3 -m venv"


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page that can be run: (language, content), in order."""
    found = re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(language, content) for language, content in found if INSTALLS not in content]


def with_command(folder: Path) -> Path:
    """Put `bpe-beam` on the path of blocks that run in a folder; returns the folder."""
    command = folder / "bin" / "bpe-beam"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bpe_beam "$@"\n')
    command.chmod(0o755)
    return folder


def run(folder: Path, language: str, content: str) -> str:
    """Run a block in a folder; returns what it printed on stdout."""
    command = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
    where = {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(bpe_beam.__file__).parents[1]),
    }
    done = subprocess.run(
        [*command[language], content],
        cwd=folder,
        env={**os.environ, **where},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{content}\n{done.stdout}\n{done.stderr}"
    return done.stdout

"""Run `bpe-beam`: in this process, which is quick, or in its own, as users do."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_beam.cli import main as cli

ROOT = Path(__file__).parents[2]
_PROGRESS = re.compile(r"[a-z-]+: (done, |[0-9])")
COMMAND = (sys.executable, "-m", "bpe_beam.cli.main")


@dataclass(frozen=True)
class Ran:
    """The result of a run.

    Attributes:
        code: The exit code.
        out: What it wrote to stdout.
        err: What it wrote to stderr.
    """

    code: int
    out: bytes
    err: str

    @property
    def message(self) -> str:
        """What is on stderr besides progress."""
        return "\n".join(line for line in self.err.splitlines() if not _PROGRESS.match(line))

    @property
    def warnings(self) -> list[str]:
        """The warnings on stderr, without the job's name, which those of progress lack."""
        found = (f": {line}".partition(": warning: ") for line in self.err.splitlines())
        return [text for _, mark, text in found if mark]

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of a run with `--summary-file -`."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def run(*args: object, stdin: bytes = b"") -> Ran:
    """Run a job in this process."""
    out, err = io.BytesIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(err):
            code = cli.main([str(arg) for arg in args])
        stdout.flush()
    finally:
        sys.stdin = before
    return Ran(code, out.getvalue(), err.getvalue())


def with_options(base: Sequence[object], *extra: object) -> list[object]:
    """Return arguments with more options, which replace those of the same names, but inputs."""
    named = {each for each in extra if str(each).startswith("--")} - {"--input", "--source"}
    kept: list[object] = []
    for at, each in enumerate(base):
        if each not in named and (at == 0 or base[at - 1] not in named):
            kept.append(each)
    return [*kept, *extra]


def run_whole(*args: object, stdin: bytes = b"") -> Ran:
    """Run a job that must succeed: warnings only on stderr, and the summary on stdout."""
    ran = run(*args, "--quiet", "--summary-file", "-", stdin=stdin)
    assert ran.code == 0, ran.err
    assert len(ran.warnings) == len(ran.err.splitlines()), ran.err
    return ran


def run_process(
    *args: object,
    stdin: bytes = b"",
    command: tuple[str, ...] = COMMAND,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 600,
) -> Ran:
    """Run a job as users do, in a process of its own.

    Args:
        *args: The job and its options.
        stdin: Standard input.
        command: The program and its first arguments.
        cwd: The working directory.
        env: More environment variables.
        timeout: Seconds after which a job that hangs fails the test.
    """
    ended = subprocess.run(
        [*command, *map(str, args)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=environment(env),
        timeout=timeout,
        check=False,
    )
    return Ran(ended.returncode, ended.stdout, ended.stderr.decode())


def run_for_output(
    *args: object, stdin: bytes = b"", code: int = 0, encoding: str = "utf-8"
) -> tuple[bytes, str]:
    """Run a job as users do, which must end with an exit code and without a traceback.

    Args:
        *args: The job and its options.
        stdin: Standard input.
        code: The expected exit code.
        encoding: The encoding of Python's standard streams.

    Returns:
        What it wrote to stdout and to stderr.
    """
    ran = run_process(*args, stdin=stdin, env={"PYTHONIOENCODING": encoding})
    assert ran.code == code, ran.err
    assert "Traceback" not in ran.err
    return ran.out, ran.err


def heavy_modules_of(code: str, *others: str) -> set[str]:
    """Return which of the packages that take long to import, or of others, a script imports."""
    script = (
        f"{code}\n"
        "import sys\n"
        f"heavy = {{'apache_beam', 'pyarrow', 'numpy', 'fsspec', 'yaml', 'regex', *{others!r}}}\n"
        "print(*(heavy & sys.modules.keys()), file=sys.stderr)\n"
    )
    ran = run_process(command=(sys.executable, "-c", script))
    assert ran.code == 0, ran.err
    return set(ran.err.splitlines()[-1].split())


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return environment variables with which a process finds this package, installed or not."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **(more or {})}

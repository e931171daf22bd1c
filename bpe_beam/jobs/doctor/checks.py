"""The result of a check of `doctor`; time limits, programs and packages for several checks.

A check shows the names of variables and files that may have secrets, never their content.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import Literal, TypeAlias

from msgspec import Struct

Status = Literal["works", "missing", "fails", "unknown"]
Outcome: TypeAlias = tuple[Status, str] | tuple[Status, str, str | None]
"""The status, the result and the remedy of a check; see `Check`."""

PlannedCheck: TypeAlias = tuple[str, str, Callable[[], Outcome]]
"""The area and the name of a check, and its function."""

PACKAGE = "bpe-beam"
NEEDED = frozenset({"machine", "package", "paths"})
"""The areas without which no job runs; a job needs few of the others."""

_MAX_OUTPUT = 1 << 16


class Check(Struct, frozen=True, omit_defaults=True):
    """The result of one check."""

    area: str  # the subject: machine, package, runners, storage, extras, paths
    name: str
    # `works`; `missing`: something optional is not installed, or cannot be started; `fails`:
    # something required does not work; `unknown`: only a real job would show it
    status: Status
    result: str  # a sentence for people
    remedy: str | None = None  # what the user can do; None: nothing


def within(seconds: float, area: str, name: str, check: Callable[[], Outcome]) -> Check:
    """Return the result of a check; if it raises or does not answer, a result that says so.

    Such a check fails in an area of NEEDED, and is unknown in any other. A call that hangs, such as
    one of a file system that does not answer, keeps its thread.
    """
    results: list[Outcome] = []
    status: Status = "fails" if area in NEEDED else "unknown"

    def call() -> None:
        try:
            results.append(check())
        except Exception as error:
            results.append((status, f"{type(error).__name__}: {error}"))

    thread = threading.Thread(target=call, name="doctor", daemon=True)
    thread.start()
    thread.join(seconds)
    return Check(area, name, *(results or [(status, f"no answer within {seconds:g} s")])[0])


def output_of(command: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """Return the exit code and output of a program. It and its children end at the time limit."""
    with tempfile.TemporaryFile() as output:  # a pipe would wait for the children, too
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code = None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return code, output.read(_MAX_OUTPUT).decode("utf-8", "replace")


def version_of(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def unmet(package: str, extra: str = "") -> list[str]:
    """Return the requirements of a package that are not installed, or in another version."""
    return sorted(set(_unmet(package, extra, set())))


def _unmet(package: str, extra: str, seen: set[tuple[str, str]]) -> Iterator[str]:
    from packaging.requirements import Requirement  # Beam has it

    if (package, extra) in seen:
        return
    seen.add((package, extra))
    for line in metadata.requires(package) or ():
        wanted = Requirement(line)
        in_extra = wanted.marker is not None and wanted.marker.evaluate({"extra": extra})
        always = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if not (in_extra and not always if extra else always):
            continue
        installed = version_of(wanted.name)
        if installed is None:
            yield f"{wanted.name}{wanted.specifier} (not installed)"
        elif not wanted.specifier.contains(installed, prereleases=True):
            yield f"{wanted.name}{wanted.specifier} (installed: {installed})"
        else:
            for each in wanted.extras:
                yield from _unmet(wanted.name, each, seen)

"""Checks of the runners: this process, Beam's own, and what Flink, Spark, Prism, Dataflow need."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bpe_beam.jobs.doctor.checks import PACKAGE, Check, output_of, unmet, version_of
from bpe_beam.jobs.doctor.stores import credentials_of
from bpe_beam.messages import list_few

_JAVA = 17
"""The version of Java that Flink and Spark need."""

_JARS = {"FlinkRunner": "flink", "SparkRunner": "spark"}


def checks(seconds: float) -> Iterator[tuple[str, str, Callable[[], Check]]]:
    """Yield the area, the name and the function of each check; programs have a time limit."""
    yield "runners", "this process", lambda: Check("runners", "this process", "works", "no Beam")
    yield "runners", "FnApiRunner", lambda: _in_process(seconds)
    for runner in _JARS:
        yield "runners", runner, lambda runner=runner: _with_java(runner, seconds)  # type: ignore[misc]
    yield "runners", "PrismRunner", _prism
    yield "runners", "DataflowRunner", _dataflow


def _in_process(seconds: float) -> Check:
    """Run a small pipeline in a process of its own."""
    code, output = output_of([sys.executable, "-m", "bpe_beam.engines.small_pipeline"], seconds)
    if code == 0:
        return Check("runners", "FnApiRunner", "works", f"apache-beam {version_of('apache-beam')}")
    last = output.strip().splitlines()[-1:] or [f"exit code {code}"]
    problem = last[0] if code is not None else f"a small pipeline took more than {seconds:g} s"
    return Check("runners", "FnApiRunner", "fails", problem, "pip install --upgrade apache-beam")


def _with_java(runner: str, seconds: float) -> Check:
    """Look for Java and a job server."""
    version, problem = _java_version(seconds)
    if problem is not None:
        remedy = f"install Java {_JAVA} or later, or set JAVA_HOME"
        return Check("runners", runner, "missing", problem, remedy)
    name = _JARS[runner]
    jar = _newest(
        (_cache() / "runners", f"{name}-job-server-*.jar"),
        (Path.home() / ".apache_beam" / "cache" / "jars", f"beam-runners-{name}-*.jar"),
    )
    if jar is None:
        remedy = f"Beam downloads one at the first run; or give --{name}_job_server_jar"
        return Check("runners", runner, "unknown", f"Java {version}; no job server", remedy)
    return Check("runners", runner, "works", f"Java {version}; job server {jar}")


def _java_version(seconds: float) -> tuple[int, str | None]:
    """Return the version of Java, 0 if it is unknown, and the problem with it, if any."""
    program = _java()
    if program is None:
        return 0, "no Java"
    try:
        code, output = output_of([program, "-version"], seconds)
    except OSError as error:
        return 0, f"{program} cannot be started: {error.strerror}"
    if code is None:
        raise TimeoutError(f"{program} -version gives no answer within {seconds:g} s")
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    if match is None:
        return 0, "Java of an unknown version"
    version = int(match[1])
    return version, None if version >= _JAVA else f"Java {version}"


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")


def _prism() -> Check:
    program = _newest(
        (_cache() / "runners", "prism-*"),
        (Path.home() / ".apache_beam" / "cache" / "prism" / "bin", "*prism*"),
    )
    if program is not None:
        return Check("runners", "PrismRunner", "works", str(program))
    remedy = "Beam downloads Prism at the first run; or give --prism_location"
    return Check("runners", "PrismRunner", "unknown", "no Prism", remedy)


def _dataflow() -> Check:
    """Look for the packages and for credentials."""
    name = "DataflowRunner"
    install = f"pip install '{PACKAGE}[dataflow]'"
    if version_of(PACKAGE) is None:
        return Check("runners", name, "unknown", "a source tree that is not installed", install)
    lacking = unmet(PACKAGE, "dataflow")
    if lacking:
        return Check("runners", name, "missing", f"lacks {list_few(lacking)}", install)
    signs = credentials_of("gcs")
    if not signs:
        remedy = "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS"
        return Check("runners", name, "missing", "the packages; no credentials", remedy)
    return Check("runners", name, "unknown", f"the packages; credentials: {', '.join(signs)}")


def _cache() -> Path:
    chosen = os.environ.get("BPE_BEAM_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "bpe-beam"


def _newest(*patterns: tuple[Path, str]) -> Path | None:
    """Return the newest file of the first folder that has one; locks of a build do not count."""
    for folder, pattern in patterns:
        matches = (file for file in folder.glob(pattern) if file.suffix != ".lock")
        files = [file for file in matches if file.is_file()]
        if files:
            return max(files, key=lambda file: file.stat().st_mtime)
    return None

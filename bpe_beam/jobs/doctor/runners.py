"""Checks of the runners: this process, Beam's own, and what Flink, Spark, Prism, Dataflow need."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bpe_beam.jobs.doctor.checks import PACKAGE, Outcome, PlannedCheck, output_of, unmet, version_of
from bpe_beam.jobs.doctor.stores import credentials_of
from bpe_beam.messages import list_few

_JAVA = 17  # the version of Java that Flink and Spark need


def checks(seconds: float) -> Iterator[PlannedCheck]:
    """Yield the checks; the programs that they start have a time limit."""
    yield "runners", "this process", lambda: ("works", "no Beam")
    yield "runners", "FnApiRunner", partial(_in_process, seconds)
    yield "runners", "FlinkRunner", partial(_with_java, "flink", seconds)
    yield "runners", "SparkRunner", partial(_with_java, "spark", seconds)
    yield "runners", "PrismRunner", _prism
    yield "runners", "DataflowRunner", _dataflow


def _in_process(seconds: float) -> Outcome:
    """Run a small pipeline in a process of its own."""
    code, output = output_of([sys.executable, "-m", "bpe_beam.engines.small_pipeline"], seconds)
    if code == 0:
        return "works", f"apache-beam {version_of('apache-beam')}"
    last = output.strip().splitlines()[-1:] or [f"exit code {code}"]
    problem = last[0] if code is not None else f"a small pipeline took more than {seconds:g} s"
    return "fails", problem, "pip install --upgrade apache-beam"


def _with_java(name: str, seconds: float) -> Outcome:
    """Look for Java and the job server of Flink or Spark."""
    version, problem = _java_version(seconds)
    if problem is not None:
        return "missing", problem, f"install Java {_JAVA} or later, or set JAVA_HOME"
    jar = _newest(
        (_cache() / "runners", f"{name}-job-server-*.jar"),
        (Path.home() / ".apache_beam" / "cache" / "jars", f"beam-runners-{name}-*.jar"),
    )
    if jar is None:
        remedy = f"Beam downloads one at the first run; or give --{name}_job_server_jar"
        return "unknown", f"Java {version}; no job server", remedy
    return "works", f"Java {version}; job server {jar}"


def _java_version(seconds: float) -> tuple[int, str | None]:
    """Return the version of Java, 0 if it is unknown, and the problem with it, if any."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home) / "bin") if home else None)
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


def _prism() -> Outcome:
    program = _newest(
        (_cache() / "runners", "prism-*"),
        (Path.home() / ".apache_beam" / "cache" / "prism" / "bin", "*prism*"),
    )
    if program is not None:
        return "works", str(program)
    return "unknown", "no Prism", "Beam downloads Prism at the first run; or give --prism_location"


def _dataflow() -> Outcome:
    """Look for the packages and for credentials."""
    install = f"pip install '{PACKAGE}[dataflow]'"
    if version_of(PACKAGE) is None:
        return "unknown", "a source tree that is not installed", install
    if lacking := unmet(PACKAGE, "dataflow"):
        return "missing", f"lacks {list_few(lacking)}", install
    signs = credentials_of("gcs")
    if not signs:
        remedy = "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS"
        return "missing", "the packages; no credentials", remedy
    return "unknown", f"the packages; credentials: {', '.join(signs)}"


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

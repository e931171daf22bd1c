"""`bpe-beam doctor`: what it finds here, what it never shows, and that it always ends."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from waiting import wait_until

from bpe_beam.jobs.doctor import runners
from bpe_beam.jobs.doctor.checks import Check, Outcome, output_of, unmet, within

SECRET = "not-to-be-shown"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What is found here, with secrets around and one path that is missing."""
    folder = tmp_path_factory.mktemp("there")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN"):
            patch.setenv(name, SECRET)
        options = json.dumps({"gs": {"token": SECRET}, "az": {"account_key": SECRET}})
        paths = (folder, folder / "none", f"https://user:{SECRET}@localhost:9/x?{SECRET}")
        ran = run("doctor", "--format", "json", "--storage-options", options, *paths)
    assert ran.code == 1, ran.err
    assert SECRET not in ran.out.decode() + ran.err
    return json.loads(ran.out)


def row(report: Any, name: str) -> Any:
    (match,) = [check for check in report["checks"] if check["name"] == name]
    return match


@pytest.mark.slow
def test_what_works_here(report: Any) -> None:
    for name in ("processor", "Python", "native code", "this process", "FnApiRunner"):
        assert row(report, name)["status"] == "works", name
    assert "bytes" not in row(report, "memory")["result"]
    assert sys.version.split()[0] in row(report, "Python")["result"]
    assert {check["status"] for check in report["checks"]} <= {
        *("works", "missing", "fails", "unknown")
    }
    for check in report["checks"]:
        if check["status"] == "missing":
            assert check["remedy"], check


def test_paths(report: Any) -> None:
    paths = [check for check in report["checks"] if check["area"] == "paths"]
    assert paths[0] | {"name": ""} == {
        "area": "paths", "name": "", "status": "works", "result": "a folder, 0 names in it"
    }  # fmt: skip
    assert [check["status"] for check in paths[1:]] == ["fails", "fails"]
    assert not report["works"]


def test_credentials_are_named(report: Any) -> None:
    s3 = row(report, "s3://")
    assert s3["status"] == "missing" or "credentials: AWS_ACCESS_KEY_ID" in s3["result"]
    hub = row(report, "hf://")
    assert hub["status"] == "missing" or "credentials: HF_TOKEN" in hub["result"]


AREAS = [("machine", "fails"), ("paths", "fails"), ("runners", "unknown"), ("extras", "unknown")]


@pytest.mark.parametrize(("area", "status"), AREAS)
def test_a_check_that_hangs_ends(area: str, status: str) -> None:
    held = threading.Event()

    def hang() -> Outcome:
        held.wait()
        raise AssertionError

    outcome = within(0.05, area, "disk", hang)
    held.set()
    assert (outcome.status, outcome.result) == (status, "no answer within 0.05 s")


@pytest.mark.parametrize(("area", "status"), AREAS)
def test_a_check_that_fails_is_a_finding(area: str, status: str) -> None:
    def fail() -> Outcome:
        raise OSError("no such device")

    outcome = within(60, area, "disk", fail)
    assert (outcome.status, outcome.result) == (status, "OSError: no such device")


def test_a_program_that_hangs_ends_with_its_children(tmp_path: Path) -> None:
    script = tmp_path / "hangs"
    script.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! > {tmp_path}/child\necho begun\nwait\n")
    script.chmod(0o755)
    code, output = None, ""
    seconds = 0.2
    while "begun" not in output:  # on a busy machine the script takes a while to begin
        seconds *= 2
        code, output = output_of([str(script)], seconds)
    assert code is None
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not is_running(child), "the end of the child")


def is_running(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def checked(name: str) -> Check:
    (check,) = [each for each in runners.checks(60) if each[1] == name]
    return within(60, *check)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the user's, the cache's and Java's."""
    for name in ("JAVA_HOME", "BPE_BEAM_CACHE", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def test_old_java_and_no_java(home: Path) -> None:
    def flink() -> Check:
        return checked("FlinkRunner")

    assert (flink().status, flink().result) == ("missing", "no Java")
    program = home / "bin" / "java"
    program.parent.mkdir()
    for version, status in (("1.8.0_402", "missing"), ("17.0.2", "unknown")):
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        program.chmod(0o755)
        assert flink().status == status
    assert flink().result == "Java 17; no job server"
    jar = home / "runners" / "flink-job-server-1.jar"
    jar.parent.mkdir()
    jar.touch()
    assert (flink().status, flink().result) == ("works", f"Java 17; job server {jar}")


def test_java_that_cannot_be_started(home: Path) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    outcome = checked("SparkRunner")
    assert (outcome.status, outcome.result) == (
        "missing",
        f"{program} cannot be started: Exec format error",
    )
    assert outcome.remedy == "install Java 17 or later, or set JAVA_HOME"


def test_java_that_hangs_is_unknown(home: Path) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    (check,) = [each for each in runners.checks(0.2) if each[1] == "SparkRunner"]
    outcome = within(60, *check)
    assert outcome.status == "unknown"
    assert outcome.result == f"TimeoutError: {program} -version gives no answer within 0.2 s"


def test_a_pipeline_that_hangs_fails(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = home / "python"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    (check,) = [each for each in runners.checks(0.2) if each[1] == "FnApiRunner"]
    result = within(60, *check)
    assert (result.status, result.result) == ("fails", "a small pipeline took more than 0.2 s")


def test_prism_that_is_being_built_is_not_there_yet(home: Path) -> None:
    folder = home / "runners"
    (folder / "prism-1.half").mkdir(parents=True)
    (folder / "prism-1.lock").touch()
    assert checked("PrismRunner").status == "unknown"
    (folder / "prism-1").touch()
    assert checked("PrismRunner").result == str(folder / "prism-1")


def test_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a package that is installed in a folder, with its metadata."""
    for name, lines in {
        "upper": ("lower[fast]<2", "nowhere>=3", "numpy", "other; extra == 'x'"),
        "lower": ("numpy<0.1; extra == 'fast'", "upper; extra == 'fast'", "absent; extra == 'y'"),
    }.items():
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        needs = "".join(f"Requires-Dist: {line}\n" for line in lines)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}"
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    base = unmet("upper")
    assert base[0] == "nowhere>=3 (not installed)"
    assert base[1].startswith("numpy<0.1 (installed: ")
    assert len(base) == 2
    assert unmet("upper", "x") == ["other (not installed)"]


@pytest.mark.slow
def test_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = run("doctor").out.decode()
    assert "\x1b[1mmachine\x1b[0m" in text
    assert "  \x1b[32mworks  \x1b[0m  processor " in text

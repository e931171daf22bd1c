"""`scripts/runners.py` where something is missing, and what a build leaves that breaks off. What it
builds for real is tested with the runners themselves."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT
from waiting import wait_until

pytestmark = pytest.mark.quick

SCRIPT = ROOT / "scripts" / "runners.py"
JAVA_17 = 'echo "    java.specification.version = 17" >&2'
# Writes a jar where the script wants it; slowly, if told.
MAVEN = 'for a in "$@"; do case $a in -Dtarget=*) mkdir -p "${a#*=}"; f="${a#*=}/job-server.jar";; '
MAVEN += 'esac; done; echo half > "$f"; $SLOWLY; echo whole > "$f"'


class Machine:
    """What the script finds on the path: a few tools and what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.cache = folder / "cache"
        self.bin.mkdir()
        for tool in ("sh", "mkdir", "ps", "sleep"):
            (self.bin / tool).symlink_to(str(shutil.which(tool)))

    def put(self, name: str, script: str) -> None:
        """Puts a program there."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def start(self, *args: str, **env: Any) -> subprocess.Popen[str]:
        """Starts the script."""
        paths = {"PATH": str(self.bin), "BPE_BEAM_CACHE": str(self.cache), "JAVA_HOME": ""}
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), *args],
            env={**os.environ, **paths, "SLOWLY": ":", **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *args: str) -> tuple[int, str, str]:
        """Runs the script; its exit code, stdout and stderr."""
        process = self.start(*args)
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("args", [("command", "flink"), ("command", "spark"), ("start",)])
def test_without_java(args: tuple[str, ...], machine: Machine) -> None:
    code, out, err = machine.run(*args)
    assert (code, out) == (1, "")
    assert err.startswith("runners.py: there is no java: Java 17 is needed")
    assert err.count("\n") == 1


@pytest.mark.parametrize("version", ["1.8", "11"])
def test_with_an_old_java(version: str, machine: Machine) -> None:
    machine.put("java", f'echo "    java.specification.version = {version}" >&2')
    code, _, err = machine.run("command", "flink")
    assert code == 1
    assert f"is Java {version}: Java 17 is needed" in err


def test_without_maven_and_go(machine: Machine) -> None:
    machine.put("java", JAVA_17)
    assert "there is no mvn: install Maven" in machine.run("get", "flink-job-server")[2]
    if not Path("/usr/local/go/bin/go").exists():
        assert "there is no go: install Go" in machine.run("get", "prism")[2]


def test_what_is_no_part(machine: Machine) -> None:
    code, _, err = machine.run("get", "prisn")
    assert (code, err.partition(":")[2].split(":")[0]) == (1, " prisn")
    assert machine.run("command", "dataflow")[0] == 2
    assert machine.run("start", "--slots", "0")[2] == (
        "runners.py: --task-managers and --slots must be 1 or more\n"
    )


def test_a_build_that_fails_says_why_and_leaves_nothing(machine: Machine) -> None:
    machine.put("java", JAVA_17)
    machine.put("mvn", "echo no such part; exit 1")
    code, out, err = machine.run("get", "spark-job-server")
    assert (code, out) == (1, "")
    assert err.endswith("package failed:\nno such part\n")
    machine.put("mvn", MAVEN)
    code, out, _ = machine.run("get", "spark-job-server")
    assert code == 0
    assert Path(out.strip().partition(" ")[2]).read_text() == "whole\n"


def test_a_build_that_is_killed_is_made_again(machine: Machine) -> None:
    machine.put("java", JAVA_17)
    machine.put("mvn", MAVEN)
    killed = machine.start("get", "flink-job-server", SLOWLY="sleep 600")
    wait_until(lambda: list(machine.cache.rglob("job-server.jar")), "the half of a build")
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    runs = [machine.start("get", "flink-job-server") for _ in range(2)]
    said = [run.communicate(timeout=600) for run in runs]
    (path,) = {out.strip().partition(" ")[2] for out, _ in said}
    assert Path(path).read_text() == "whole\n"
    assert sum("building" in err for _, err in said) == 1, "one builds, the other waits"
    names = {each.name for each in Path(path).parent.iterdir()}
    assert names == {Path(path).name, f"{Path(path).name}.lock"}


def test_what_stands_is_not_built_again(machine: Machine) -> None:
    machine.put("java", JAVA_17)
    machine.put("mvn", MAVEN)
    first = machine.run("command", "flink")
    (machine.bin / "mvn").unlink()
    again = machine.run("command", "flink")
    assert first[:2] == again[:2]
    assert again[2] == ""
    words = shlex.split(again[1])
    assert words[:3] == ["bpe-beam", "count", "--config"]
    assert Path(words[3]).name == "flink.yaml"


def test_stop_without_a_cluster(machine: Machine) -> None:
    code, _, err = machine.run("stop")
    assert code == 0
    assert err.startswith("no cluster in ")


def test_a_folder_of_somebody_is_no_home(machine: Machine, tmp_path: Path) -> None:
    machine.put("java", JAVA_17)
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "mine").write_text("mine")
    code, _, err = machine.run("start", "--home", str(home))
    assert code == 1
    assert "has other files" in err
    assert (home / "bin" / "mine").read_text() == "mine"


@pytest.mark.parametrize("boot", ["of before", None])
def test_stop_leaves_others_alone(boot: str | None, machine: Machine, tmp_path: Path) -> None:
    """The numbers in the record are those of other processes by now."""
    home = tmp_path / "home"
    home.mkdir()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        known = Path("/proc/sys/kernel/random/boot_id")
        now = known.read_text().strip() if known.exists() else ""
        record = {"port": 1, "processes": {"jobmanager": other.pid}, "boot": boot or now}
        (home / "cluster.json").write_text(json.dumps(record))
        assert machine.run("stop", "--home", str(home))[0] == 0
        assert other.poll() is None
        other.kill()
    assert not (home / "cluster.json").exists()

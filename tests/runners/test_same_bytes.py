"""Every job on every runner: the bytes of a run in process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import ROOT, run_process, run_whole
from corpora import JOBS, Made, measured_of
from engines import Cluster, Engine
from read_back import tree
from waiting import SECONDS

pytestmark = pytest.mark.runners

# All checks of types that a runner of Beam can do.
STRICT = ("--type_check_strictness=ALL_REQUIRED", "--runtime_type_check")


def run_on(engine: Engine, made: Made, job: str, out: Path, *more: str) -> str:
    """Runs a job, which must give and measure what it does in process; returns its stderr."""
    summary = out.with_suffix(".json")
    given = (*made.command(job), *engine.flags, *more, "--summary-file", summary, "--output", out)
    ran = run_process(*given, timeout=SECONDS)
    assert ran.code == 0, ran.err
    assert tree(out) == made.results[job]
    assert measured_of(json.loads(summary.read_text())) == made.measured[job]
    if job == "tokenize":
        told = ("--full", "--input", str(made.folder / "data" / "*"))
        assert run_whole("verify", out, *told).summary["whole"] is True
    return ran.err


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("name", ["flink", "prism", "spark"])
def test_on_one_machine(
    name: str, job: str, local_engine: Callable[[str], Engine], made: Made, tmp_path: Path
) -> None:
    engine = local_engine(name)
    # `test_progress_and_summary_are_all_that_stderr_gets` counts without the checks of types.
    more = ("--debug", *STRICT) if job == "count" else ("--quiet",)
    err = run_on(engine, made, job, tmp_path / "out", *more)
    assert engine.shows_in(err) if job == "count" else err == ""


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("parallelism", [1, 2, 4])
def test_on_a_cluster(
    parallelism: int, job: str, cluster: Cluster, made: Made, tmp_path: Path
) -> None:
    before = cluster.jobs()
    more = STRICT if parallelism == 2 and job != "train" else ()
    err = run_on(cluster.engine(parallelism), made, job, tmp_path / "out", "--quiet", *more)
    assert err == ""
    ran = {job: state for job, state in cluster.jobs().items() if job not in before}
    assert list(ran.values()) == ["FINISHED"]
    assert cluster.parallelism_of(*ran) == parallelism


def test_progress_and_summary_are_all_that_stderr_gets(
    engine: Engine, made: Made, tmp_path: Path
) -> None:
    # A relative path, which means the same to workers whose working directory is another.
    given = (*made.command("count"), *engine.flags, "--output", "out", "--progress", "json")
    ran = run_process(*given, cwd=tmp_path, timeout=SECONDS)
    assert ran.code == 0
    assert tree(tmp_path / "out") == made.results["count"]
    lines = ran.err.splitlines()
    stages = [line for line in lines if line.startswith('{"stage": "count"')]
    assert '"done": 0' not in stages[-1]
    first, *rest = [line for line in lines if line not in stages]
    assert first == "bpe-beam count"
    assert all(line.startswith("  ") or line == "next:" for line in rest), ran.message
    assert len(rest) < 60


def test_every_config_is_run() -> None:
    ours = {"flink", "prism", "spark", "flink_cluster"}
    found = {path.stem for path in (ROOT / "configs" / "runners").glob("*.yaml")}
    assert found - {"dataflow"} == ours

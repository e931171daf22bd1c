"""Every job on every runner: the bytes of a run in process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import ROOT, run_process, run_whole
from corpora import Made, measured_of
from engines import Cluster, Engine
from read_back import tree
from waiting import SECONDS

pytestmark = pytest.mark.runners

# CI runs the jobs on a cluster of Flink; on Flink within one process, the scheduled tests.
ON_ONE_MACHINE = [pytest.param("flink", marks=pytest.mark.scheduled), "prism", "spark"]
# All checks of types that a runner of Beam can do.
STRICT = ("--type_check_strictness=ALL_REQUIRED", "--runtime_type_check")


def run_on(engine: Engine, made: Made, job: str, out: Path, *more: str) -> str:
    """Run a job, which must write and measure what it does in process.

    Args:
        engine: The runner.
        made: The corpus, and what is expected.
        job: The job.
        out: The output folder; the job gets its name, relative to its parent, since workers have
            other working directories.
        more: More options.

    Returns:
        What the job wrote to stderr.
    """
    summary = out.with_suffix(".json")
    arguments = (*made.command(job), *engine.flags, *more, "--summary-file", summary)
    # Prism on a busy machine may report the metrics of some bundles only. The bytes never differ.
    tries = 3 if engine.name == "prism" else 1
    for left in reversed(range(tries)):
        ran = run_process(*arguments, "--output", out.name, cwd=out.parent, timeout=SECONDS)
        assert ran.code == 0, ran.err
        assert tree(out) == made.results[job]
        measured = measured_of(json.loads(summary.read_text()))
        if measured == made.measured[job] or not left:
            break
        shutil.rmtree(out)
    assert measured == made.measured[job]
    if job == "tokenize":
        corpus = ("--full", "--input", str(made.folder / "data" / "*"))
        assert run_whole("verify", out, *corpus).summary["whole"] is True
    return ran.err


def check_progress(err: str, job: str) -> None:
    """Check that progress as JSON and the summary are all that stderr has."""
    lines = err.splitlines()
    stages = [line for line in lines if line.startswith(f'{{"stage": "{job}"')]
    assert '"done": 0' not in stages[-1]
    first, *rest = [line for line in lines if line not in stages]
    assert first == f"bpe-beam {job}"
    assert all(line.startswith("  ") or line == "next:" for line in rest), err
    assert len(rest) < 60


@pytest.mark.parametrize("name", ON_ONE_MACHINE)
def test_count_on_one_machine(
    name: str, local_engine: Callable[[str], Engine], made: Made, tmp_path: Path
) -> None:
    engine = local_engine(name)
    assert engine.shows_in(run_on(engine, made, "count", tmp_path / "out", "--debug", *STRICT))


@pytest.mark.parametrize("name", ON_ONE_MACHINE)
def test_train_on_one_machine(
    name: str, local_engine: Callable[[str], Engine], made: Made, tmp_path: Path
) -> None:
    assert run_on(local_engine(name), made, "train", tmp_path / "out", "--quiet") == ""


@pytest.mark.parametrize("name", ON_ONE_MACHINE)
def test_tokenize_on_one_machine(
    name: str, local_engine: Callable[[str], Engine], made: Made, tmp_path: Path
) -> None:
    engine = local_engine(name)
    err = run_on(engine, made, "tokenize", tmp_path / "out", "--progress", "json")
    check_progress(err, "tokenize")


ALSO_SCHEDULED = [
    ("count", 1),
    ("count", 2),
    ("train", 1),
    ("train", 4),
    ("tokenize", 1),
    ("tokenize", 4),
]
"""Numbers of slots of which CI has enough with other jobs."""


@pytest.mark.parametrize(
    ("job", "parallelism"),
    [
        *[("count", 4), ("train", 2), ("tokenize", 2)],
        *(pytest.param(*each, marks=pytest.mark.scheduled) for each in ALSO_SCHEDULED),
    ],
)
def test_on_a_cluster(
    job: str, parallelism: int, cluster: Cluster, made: Made, tmp_path: Path
) -> None:
    before = cluster.jobs()
    shown = ("--progress", "json") if job == "count" else ("--quiet",)
    more = STRICT if parallelism > 1 and job != "train" else ()
    err = run_on(cluster.engine(parallelism), made, job, tmp_path / "out", *shown, *more)
    if job == "count":
        check_progress(err, "count")
    else:
        assert err == ""
    ran = {job: state for job, state in cluster.jobs().items() if job not in before}
    assert list(ran.values()) == ["FINISHED"]
    assert cluster.parallelism_of(*ran) == parallelism


def test_every_config_is_run() -> None:
    ours = {"flink", "prism", "spark", "flink_cluster"}
    found = {path.stem for path in (ROOT / "configs" / "runners").glob("*.yaml")}
    assert found - {"dataflow"} == ours

"""Which engine runs a job, and on how many workers."""

from __future__ import annotations

import pytest

from bpe_beam.engines.local import default_workers
from bpe_beam.engines.run import run_summary, workers_of
from bpe_beam.errors import UsageError
from bpe_beam.settings.common import RunSettings

pytestmark = pytest.mark.quick


def test_the_local_engine_runs_jobs_without_a_runner() -> None:
    assert RunSettings().is_local
    assert RunSettings(workers=3).is_local
    assert not RunSettings(runner="FnApiRunner").is_local
    # A flag of a runner means Beam's own one in this process.
    flagged = RunSettings(runner_options=("--direct_num_workers=3",))
    assert flagged.in_process
    assert not flagged.is_local


def test_workers() -> None:
    assert workers_of(RunSettings()) == default_workers()
    assert workers_of(RunSettings(workers=3)) == 3
    assert workers_of(RunSettings(workers=3), tasks=2) == 2
    assert workers_of(RunSettings(workers=3), tasks=0) == 1
    assert workers_of(RunSettings(runner_options=("--direct_num_workers=4",)), tasks=2) == 4


def test_the_summary_names_the_runner() -> None:
    assert run_summary(RunSettings(workers=3), 9) == {"runner": "in process", "workers": 3}
    assert run_summary(RunSettings(runner="FnApiRunner", workers=3), 2) == {
        "runner": "in process",
        "workers": 2,
    }
    assert run_summary(RunSettings(runner="FlinkRunner"), 9) == {
        "runner": "FlinkRunner",
        "workers": None,
    }


@pytest.mark.parametrize("runner", [None, "FnApiRunner", "DirectRunner"])
def test_beams_own_worker_processes_are_refused(runner: str | None) -> None:
    flags = ("--direct_running_mode=multi_processing",)
    with pytest.raises(UsageError, match="must be multi_threading or in_memory, got multi_proc"):
        RunSettings(runner=runner, runner_options=flags)
    assert not RunSettings(runner="FlinkRunner", runner_options=flags).in_process

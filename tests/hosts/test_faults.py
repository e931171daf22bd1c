"""Jobs on Flink whose hosts, links and storage fail: the bytes of one machine, or a clear error and
a repetition that ends with these bytes; never a command without an end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from flink_hosts import FlinkHosts
from host_faults import FAULTS, PHASES, Jobs, Trial, attempt

pytestmark = pytest.mark.hosts

FIVE = [
    Trial(-1, "tokenize", "a task manager lost", "documents", 0.5, "worker-1"),
    Trial(-2, "count", "the driver lost", "splits", 0.5, "worker-1"),
    Trial(-3, "count", "5 s without the store", "splits", 0.5, "worker-2"),
    Trial(-4, "count", "200 ms and 2 % loss", "splits", 0.5, "worker-3"),
    Trial(-5, "count", "the store restarted", "splits", 0.5, "worker-1"),
]
TRIALS = 100


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FlinkHosts, Jobs]]:
    """Yield the cluster, and the jobs in its store."""
    folder = tmp_path_factory.mktemp("corpus")
    Jobs.write_corpus(folder)
    with FlinkHosts.running(folder) as running:
        yield running, Jobs(running, folder)


@pytest.mark.parametrize("job", PHASES)
@pytest.mark.scheduled
def test_without_a_fault(job: str, cluster: tuple[FlinkHosts, Jobs]) -> None:
    outcome = attempt(*cluster, Trial(-6, job, "none", "launch", 0, "worker-1"))
    assert outcome.result == "same bytes", outcome
    assert outcome.message == ""


@pytest.mark.parametrize("trial", FIVE, ids=lambda trial: trial.fault)
def test_five_faults(trial: Trial, cluster: tuple[FlinkHosts, Jobs]) -> None:
    for _ in range(3):
        outcome = attempt(*cluster, trial)
        assert outcome.good, outcome
        if outcome.reached != "ended":
            return
    pytest.fail("the job had always ended before its fault came")


@pytest.mark.scheduled
def test_a_hundred_faults(
    cluster: tuple[FlinkHosts, Jobs], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each seed is a trial. Its line of the log has all that repeats it, and the outcome.

    BPE_BEAM_TRIALS=17:20 runs those with the seeds from 17 to 19; BPE_BEAM_TRIALS_LOG is the log.
    """
    first, _, end = os.environ.get("BPE_BEAM_TRIALS", f"0:{TRIALS}").partition(":")
    default = tmp_path_factory.getbasetemp() / "trials.jsonl"
    log = Path(os.environ.get("BPE_BEAM_TRIALS_LOG", default))
    bad = []
    for seed in range(int(first), int(end)):
        trial = Trial.of(seed)
        outcome = attempt(*cluster, trial)
        with log.open("a") as out:
            print(json.dumps(outcome.row(trial)), file=out)
        if not outcome.good:
            bad.append(outcome.row(trial))
    assert not bad


def test_every_fault_has_trials() -> None:
    trials = [Trial.of(seed) for seed in range(TRIALS)]
    assert {trial.fault for trial in trials} == {*FAULTS}
    assert min([trial.fault for trial in trials].count(fault) for fault in FAULTS) >= 6

"""Jobs on hosts with another store, or another runner, than in the tests of faults: the bytes of
one machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from flink_hosts import FlinkHosts
from host_faults import Jobs, Trial, attempt
from spark_hosts import SparkHosts

pytestmark = [pytest.mark.hosts, pytest.mark.scheduled]


@pytest.mark.parametrize(("kind", "gcs"), [(FlinkHosts, True), (SparkHosts, False)])
def test_a_cluster(kind: type[FlinkHosts], gcs: bool, tmp_path: Path) -> None:
    Jobs.write_corpus(tmp_path)
    with kind.running(tmp_path, gcs=gcs) as cluster:
        jobs = Jobs(cluster, tmp_path)
        for job in ("count", "tokenize"):
            outcome = attempt(cluster, jobs, Trial(-7, job, "none", "launch", 0, "worker-1"))
            assert (outcome.result, outcome.message) == ("same bytes", ""), outcome

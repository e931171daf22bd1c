"""Jobs on Flink whose hosts share only GCS: the bytes of one machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from flink_hosts import FlinkHosts
from host_faults import Jobs, Trial, attempt

pytestmark = [pytest.mark.hosts, pytest.mark.scheduled]


def test_gcs_in_place_of_s3(tmp_path: Path) -> None:
    Jobs.write_corpus(tmp_path)
    with FlinkHosts.running(tmp_path, gcs=True) as cluster:
        jobs = Jobs(cluster, tmp_path)
        for job in ("count", "tokenize"):
            outcome = attempt(cluster, jobs, Trial(-7, job, "none", "launch", 0, "worker-1"))
            assert (outcome.result, outcome.message) == ("same bytes", ""), outcome

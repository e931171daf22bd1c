"""Spark's standalone cluster on the hosts of `flink_hosts`, in Flink's place."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from command_line import ROOT
from flink_hosts import HOME, NO_ANSWER, FlinkHosts, ask


class SparkHosts(FlinkHosts):
    """A master, and a worker on each host where Flink has a task manager."""

    job_server = "spark-job-server"
    roles = ("spark-master", "spark-worker")

    def _state(self) -> dict[str, Any]:
        with contextlib.suppress(*NO_ANSWER):
            state: dict[str, Any] = json.loads(ask(self.hosts["manager"], 8080, "json/"))
            return state
        return {"aliveworkers": 0, "activeapps": ["unknown"]}

    def workers(self) -> int:
        """Return the number of workers; 0 while the master does not answer."""
        return int(self._state()["aliveworkers"])

    def _ended(self) -> bool:
        return not self._state()["activeapps"]

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that choose the cluster."""
        environment = json.dumps({"command": f"{HOME}/bin/worker"})
        return (
            *("--config", str(ROOT / "configs" / "runners" / "spark.yaml")),
            "--spark_master_url=spark://manager:7077",
            "--environment_type=PROCESS",
            f"--environment_config={environment}",
            f"--spark_job_server_jar={self.jar}",
        )

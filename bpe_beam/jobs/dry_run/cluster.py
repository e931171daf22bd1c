"""The time and the price of a job's stages on a cluster, for `--cluster`.

Stages run one after another. In a stage each slot of the cluster runs a task after another, so the
slot with the most tasks decides the time: processor time, the latency of requests, and bytes over
the network of the worker, which its slots share. Nothing of it overlaps in the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, nan
from typing import Any

from msgspec import Struct

from bpe_beam.errors import UsageError, require
from bpe_beam.jobs.corpus.summary import Rows
from bpe_beam.jobs.dry_run.costs import DRIVER_REQUESTS, WORKER_BYTES, Stage, runner_seconds
from bpe_beam.messages import did_you_mean, format_bytes, shortened
from bpe_beam.settings.cluster import Cluster
from bpe_beam.storage import Storage, redact

RUNNER = "runner"
"""The row of what the runner takes by itself: the start of pipelines and of their workers."""

_MAX_PRICE = 10**12


class Prices(Struct, frozen=True):
    """A file of prices; see `configs/cluster/prices.yaml`."""

    currency: str = ""
    core_hour: float = 0.0
    memory_gb_hour: float = 0.0
    driver_hour: float = 0.0
    shuffled_gb: float = 0.0
    million_reads: float = 0.0
    million_writes: float = 0.0
    stored_gb_month: float = 0.0


def read_prices(storage: Storage, url: str) -> Prices:
    """Return the prices of a YAML file."""
    try:
        values = dict(_prices(storage, url))
    except UsageError as error:
        raise UsageError(error.problem, ("cluster",)) from None
    require(bool(values), f"must have prices, got none in {redact(url)}", "cluster")
    return Prices(**values)


def _prices(storage: Storage, url: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a file of prices."""
    from bpe_beam.storage.yaml_file import read_mapping, texts  # slow to import

    for name, node, line in read_mapping(storage, url, "prices"):
        where = f"prices {redact(url)}, line {line}: {shortened(name)}"
        if name not in Prices.__struct_fields__:
            near = did_you_mean(name, Prices.__struct_fields__)
            raise UsageError(f"{where} must be one of {', '.join(Prices.__struct_fields__)}{near}")
        typed = texts(node, where)
        if len(typed) != 1:
            raise UsageError(f"{where} must be one value, got {len(typed)}")
        if name == "currency":
            yield name, typed[0]
            continue
        try:
            price = float(typed[0])
        except ValueError:
            price = nan
        if not 0 <= price <= _MAX_PRICE:
            raise UsageError(f"{where} must be a number from 0 to {_MAX_PRICE:,}")
        yield name, price


def seconds_of(stage: Stage, cluster: Cluster, pace: float = 1.0) -> float:
    """Return the time of a stage on a cluster, without the start of its pipeline."""
    processor = stage.all_seconds(pace) / (cluster.speed / 100)
    requests, moved = stage.reads + stage.writes, stage.read_bytes + stage.written_bytes
    latency = requests * cluster.latency / 1000
    if not stage.tasks:
        return processor + latency / DRIVER_REQUESTS + moved / cluster.network
    share = ceil(stage.tasks / cluster.slots) / stage.tasks  # the largest of one slot
    of_worker = ceil(stage.tasks / cluster.workers) / stage.tasks  # the largest of one worker
    return (processor + latency / stage.at_once) * share + moved * of_worker / cluster.network


def prediction(
    stages: Mapping[str, Stage],
    cluster: Cluster,
    prices: Prices,
    storage_bytes: int,
    pace: float = 1.0,
) -> Rows:
    """Return the rows of a summary: a table of the stages, and their sums.

    `pace` is the pace of the machine that has measured the stages.

    Stages of workers that follow one another are one pipeline, unless the driver is between them,
    as it is before a stage with pipelines of its own.
    """
    pipelines, before = 0, None
    for stage in stages.values():
        if stage.tasks:
            follows = before is not None and before.tasks > 0
            pipelines += stage.pipelines or int(not follows)
        before = stage
    runner = Stage(reference_seconds=pipelines * runner_seconds(cluster.workers))
    taken = {name: seconds_of(stage, cluster, pace) for name, stage in stages.items()}
    if pipelines:
        stages = {**stages, RUNNER: runner}
        taken[RUNNER] = pipelines * cluster.start
    seconds = sum(taken.values())
    table: dict[str, Rows] = {
        name: {
            "processor_seconds": round(stage.all_seconds(pace), 1),
            "read_bytes": stage.read_bytes,
            "written_bytes": stage.written_bytes,
            "shuffled_bytes": stage.shuffled_bytes,
            "requests": stage.reads + stage.writes,
            "seconds": round(taken[name], 1),
        }
        for name, stage in stages.items()
    }
    # A stage with few tasks has not one for each core of a worker.
    of_tasks = max(
        stage.memory_bytes * min(cluster.cores, ceil(stage.tasks / cluster.workers))
        for stage in stages.values()
    )
    of_driver = max((stage.memory_bytes for stage in stages.values() if not stage.tasks), default=0)
    worker_memory = WORKER_BYTES + of_tasks
    rows: Rows = {
        "cluster_stages": table,
        "cluster": {
            "workers": cluster.workers,
            "cores": cluster.slots,
            "pipelines": pipelines,
            "seconds": round(seconds, 1),
            "processor_seconds": round(sum(row["processor_seconds"] for row in table.values()), 1),
            "requests": sum(row["requests"] for row in table.values()),
            "worker_memory_bytes": worker_memory,
            "driver_memory_bytes": of_driver,
        },
    }
    if cluster.prices:
        rows["cluster_price"] = _price(stages, cluster, prices, seconds, storage_bytes)
    if worker_memory > cluster.memory:
        rows["warnings"] = [
            f"a worker with {cluster.cores} cores needs about {format_bytes(worker_memory)} of "
            f"memory, more than {format_bytes(cluster.memory)}"
        ]
    return rows


def _price(
    stages: Mapping[str, Stage],
    cluster: Cluster,
    prices: Prices,
    seconds: float,
    storage_bytes: int,
) -> Rows:
    hours, gigabytes = seconds / 3600, cluster.memory / 1e9
    worker = cluster.cores * prices.core_hour + gigabytes * prices.memory_gb_hour
    shuffled = sum(stage.shuffled_bytes for stage in stages.values())
    reads = sum(stage.reads for stage in stages.values())
    writes = sum(stage.writes for stage in stages.values())
    parts = {
        "workers": hours * cluster.workers * worker,
        "driver": hours * prices.driver_hour,
        "requests": (reads * prices.million_reads + writes * prices.million_writes) / 1e6,
        "shuffle": shuffled / 1e9 * prices.shuffled_gb,
    }
    total = round(sum(parts.values()), 2)
    month = storage_bytes / 1e9 * prices.stored_gb_month
    return {
        "currency": prices.currency,
        **{name: round(value, 2) for name, value in parts.items()},
        "total": total,
        "output_stored_for_a_month": round(month, 2),
    }

"""The time and the price on a cluster, against figures that were computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.jobs.dry_run.cluster import Prices, prediction, read_prices, seconds_of
from bpe_beam.jobs.dry_run.costs import PIPELINE_SECONDS, WORKER_BYTES, WORKER_SECONDS, Stage
from bpe_beam.settings.cluster import Cluster
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

CLUSTER = Cluster(10, 4, network=10**8, latency=50, start=30, memory=8 * 10**9)
PRICES = Path(__file__).parents[3] / "configs" / "cluster" / "prices.yaml"


@pytest.fixture(autouse=True)
def free_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests and bytes take no processor time."""
    for name in ("REQUEST_SECONDS", "BYTE_SECONDS"):
        monkeypatch.setattr(f"bpe_beam.jobs.dry_run.costs.{name}", 0.0)


def stage(tasks: int) -> Stage:
    """Return 800 s of work, 4,000 requests and 20 GB, by so many tasks."""
    return Stage(
        processor_seconds=800, tasks=tasks, reads=3000, writes=1000,
        read_bytes=15 * 10**9, written_bytes=5 * 10**9, memory_bytes=10**8,
    )  # fmt: skip


def test_the_time_of_a_stage() -> None:
    # 40 slots: each has 2 of 80 tasks, so 20 s and 5 s of requests; 10 workers move 1 GB/s.
    assert seconds_of(stage(80), CLUSTER) == pytest.approx(20 + 5 + 20)
    # Of 50 tasks, some slots have 2: 1/25 of all.
    assert seconds_of(stage(50), CLUSTER) == pytest.approx(32 + 8 + 20)
    # Of 11 tasks, one worker has 2.
    assert seconds_of(stage(11), CLUSTER) == pytest.approx((800 + 200 + 2 * 200) / 11)
    # 5 tasks are on 5 workers.
    assert seconds_of(stage(5), CLUSTER) == pytest.approx(160 + 40 + 40)
    assert seconds_of(stage(80), replace(CLUSTER, speed=50)) == pytest.approx(40 + 5 + 20)
    # The driver is one process with 32 requests at once.
    assert seconds_of(stage(0), CLUSTER) == pytest.approx(800 + 6.25 + 200)


def test_pipelines_start_once_for_the_stages_that_follow_one_another() -> None:
    stages = {"a": stage(80), "b": stage(80), "driver": stage(0), "c": stage(80)}
    rows = prediction(stages, CLUSTER, Prices(), 0)
    assert rows["cluster"]["pipelines"] == 2
    assert rows["cluster"]["seconds"] == pytest.approx(3 * 45 + 1006.2 + 2 * 30, abs=0.1)
    assert rows["cluster_stages"]["a"]["seconds"] == 45
    runner = rows["cluster_stages"]["runner"]
    assert runner["seconds"] == 60
    assert runner["processor_seconds"] == 2 * (PIPELINE_SECONDS + 10 * WORKER_SECONDS)
    assert rows["cluster"]["processor_seconds"] == 3200 + runner["processor_seconds"]
    slow = prediction(stages, CLUSTER, Prices(), 0, pace=2)["cluster_stages"]
    assert slow["a"] == rows["cluster_stages"]["a"]
    assert slow["runner"]["processor_seconds"] == 2 * runner["processor_seconds"]
    assert "cluster_price" not in rows


def test_each_round_is_a_pipeline() -> None:
    stages = {"write parts": stage(80), "merge rounds": replace(stage(80), pipelines=20)}
    rows = prediction(stages, CLUSTER, Prices(), 0)
    assert rows["cluster"]["pipelines"] == 21
    assert rows["cluster_stages"]["runner"]["seconds"] == 21 * 30
    stages["merge rounds"] = replace(stage(80), pipelines=1)
    assert prediction(stages, CLUSTER, Prices(), 0)["cluster"]["pipelines"] == 2


def test_memory_of_a_worker_beyond_what_it_has() -> None:
    rows = prediction({"a": stage(80)}, replace(CLUSTER, memory=6 * 10**8), Prices(), 0)
    assert rows["cluster"]["worker_memory_bytes"] == WORKER_BYTES + 4 * 10**8
    (warning,) = rows["warnings"]
    assert "a worker with 4 cores needs about 700 MB" in warning
    few = prediction({"a": stage(15), "b": stage(0)}, CLUSTER, Prices(), 0)["cluster"]
    assert few["worker_memory_bytes"] == WORKER_BYTES + 2 * 10**8
    assert few["driver_memory_bytes"] == 10**8
    assert "warnings" not in prediction({"a": stage(80)}, CLUSTER, Prices(), 0)


def test_the_price() -> None:
    """10 workers for an hour: 40 cores and 80 GB; 3 million reads and 1 million writes."""
    prices = Prices("USD", 0.05, 0.01, 2.0, 0.1, 0.5, 4.0, 0.02)
    cluster = replace(CLUSTER, latency=0, start=3600, prices="p")
    one = Stage(tasks=80, reads=3 * 10**6, writes=10**6, shuffled_bytes=10**10)
    rows = prediction({"a": one}, cluster, prices, 10**12)
    assert rows["cluster_price"] == {
        "currency": "USD",
        "workers": 2.8,
        "driver": 2.0,
        "requests": 3 * 0.5 + 4.0,
        "shuffle": 1.0,
        "total": 11.3,
        "output_stored_for_a_month": 20.0,
    }


def test_the_file_of_the_example() -> None:
    prices = read_prices(Storage(), str(PRICES))
    assert prices.currency == "EUR"
    assert "0.0" not in {str(getattr(prices, name)) for name in Prices.__struct_fields__}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("core_hours: 1", 'line 1: "core_hours" must be one of currency, '),
        ("core_hours: 1", "did you mean core_hour?"),
        ("core_hour: cheap", "must be a number from 0"),
        ("core_hour: -1", "must be a number from 0"),
        ("core_hour: .nan", "must be a number from 0"),
        ("core_hour: 1e400", "must be a number from 0"),
        ('core_hour: !!int ""', "must be a number from 0"),
        ("core_hour: [1, 2]", "must be one value, got 2"),
        ("core_hour: []", "must be one value, got 0"),
        ("# nothing", "must have prices, got none"),
        ("currency: {a: b}", "currency"),
        ("- 1", "must be a mapping"),
        ("core_hour: 1\ncore_hour: 2", "line 2: core_hour is repeated"),
    ],
)
def test_other_files_are_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"^cluster .*p\.yaml") as error:
        read_prices(Storage(), str(tmp_path / "p.yaml"))
    assert said in str(error.value)

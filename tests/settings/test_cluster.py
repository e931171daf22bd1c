"""`--cluster`: its fields, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

from bpe_beam.settings.cluster import Cluster, cluster_of, parse_cluster

pytestmark = pytest.mark.quick

FIELDS = ("workers", "cores", "latency", "start", "memory", "network", "speed", "prices")


def test_fields_are_read_with_their_units() -> None:
    typed = ["workers=100,cores=4,memory=16GB,network=125MB", "latency=0,start=0,speed=80%"]
    made = cluster_of(parse_cluster([*typed, "prices=a=b.yaml"]))
    assert made == Cluster(100, 4, 16 * 10**9, 125 * 10**6, 0, 80, 0, "a=b.yaml")
    assert made.slots == 400


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("workers=0", "workers must be from 1 "),
        ("workers=-1", "workers must be from 1 "),
        ("workers=many", "workers must be a whole number"),
        ("workers=1.5", "workers must be a whole number"),
        ("workers=99999999999999999999", "workers must be from 1 "),
        ("workers=2,cores=0", "cores must be from 1 "),
        ("workers=2,network=0", "network must be from 1 "),
        ("workers=2,memory=much", "memory must be a size"),
        ("workers=2,speed=0%", "speed must be from 1 "),
        ("workers=2,speed=half", "speed must be a percentage"),
        ("workers=2,start=-5", "start must be from 0 "),
        ("worker=2", "no field 'worker'; did you mean workers?"),
        ("workers=2,colour=red", "no field 'colour'"),
        ("workers", "must be FIELD=VALUE,..., got 'workers'"),
        ("workers=", "must be FIELD=VALUE,..., got 'workers='"),
        ("workers=2,", "must be FIELD=VALUE,..., got ''"),
        ("cores=4", "must have the field workers"),
    ],
)
def test_other_values_are_refused_with_the_fields(value: str, said: str, tmp_path: Path) -> None:
    ran = run("count", "--input", "x", "--output", tmp_path, "--dry-run", "--cluster", value)
    assert ran.code == 2
    assert "--cluster" in ran.message
    assert said in ran.message
    assert all(field in ran.message for field in FIELDS)


@pytest.mark.parametrize("job", ["count", "train", "tokenize"])
def test_a_cluster_needs_a_dry_run(job: str, tmp_path: Path) -> None:
    words = {"train": ("--vocab-size", "300"), "tokenize": ("--tokenizer", "t")}.get(job, ())
    ran = run(job, "--input", "x", "--output", tmp_path, *words, "--cluster", "workers=2")
    assert ran.code == 2
    assert "--cluster has no effect without a dry run; give --dry-run" in ran.message


def test_a_field_is_given_once(tmp_path: Path) -> None:
    twice = ("--cluster", "workers=2", "--cluster", "workers=3")
    ran = run("count", "--input", "x", "--output", tmp_path, "--dry-run", *twice)
    assert "--cluster must have workers once, got it twice" in ran.message

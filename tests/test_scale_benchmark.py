"""The benchmark of costs: text whose unique words grow, and the constants that fit rows."""

from __future__ import annotations

import importlib
import json
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.quick

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def growing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    return importlib.import_module("growing_words")


def test_unique_words_go_on_growing(growing: ModuleType) -> None:
    """Beyond the words of the text that it is made of, by about its power."""
    made = random.Random(1)
    words = [f"w{made.paretovariate(0.6):.0f}"[:9] for _ in range(20_000)]
    letters = str.maketrans("0123456789", "abcdefghij")
    texts = [" ".join(words[i : i + 100]).translate(letters) for i in range(0, 20_000, 100)]
    growth = growing.Growth(texts)
    assert 0.4 < growth.power < 0.9
    data = b"".join(growth.file(3, 600_000))
    assert data == b"".join(growth.file(3, 600_000))
    assert data != b"".join(growth.file(4, 600_000))
    found = [word for line in data.splitlines() for word in json.loads(line)["text"].split()]
    unique = [len(set(found[: len(found) // part])) for part in (4, 2, 1)]
    assert len(found) > 60_000
    assert unique[2] > 1.5 * len(set(" ".join(texts).split()))
    assert 2**0.4 < unique[1] / unique[0] < 2**0.9
    assert 2**0.4 < unique[2] / unique[1] < 2**0.9


@pytest.mark.usefixtures("growing")
def test_constants_are_found_in_rows() -> None:
    scale = importlib.import_module("scale")
    rows = [
        {
            "job": "count",
            "requests": requests,
            "read_bytes": read,
            "written_bytes": 10**6,
            "steps": {"a": 1.0, "b": 2.0},
            "pace": pace,
            "processor_seconds": 3 + pace * (1.5 + 2e-3 * requests + 1e-9 * (read + 10**6)),
        }
        for requests, read in ((100, 10**8), (1000, 10**8), (500, 10**9), (4000, 2 * 10**9))
        for pace in (0.5, 1.0, 2.0)
    ]
    rows.append({"job": "train", "processor_seconds": 99.0})
    assert scale.fitted(rows) == pytest.approx((1.5, 2e-3, 1e-9))


@pytest.mark.usefixtures("growing")
def test_the_processor_time_of_a_host(tmp_path: Path) -> None:
    """By the control groups of both versions, in which a host has one or several."""
    hosts = importlib.import_module("scale_hosts")
    first, second, whole = (tmp_path / name for name in ("cpu", "cpuacct", "whole"))
    for each in (first, second, whole):
        each.mkdir()
    (first / "cpu.stat").write_text("nr_periods 5\nthrottled_time 7\n")
    (second / "cpuacct.usage").write_text("2500000000\n")
    (whole / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 7\n")
    assert hosts.processor_seconds([first, second]) == 2.5
    assert hosts.processor_seconds([whole]) == 1.5
    with pytest.raises(SystemExit, match="no control groups"):
        hosts.processor_seconds([first])

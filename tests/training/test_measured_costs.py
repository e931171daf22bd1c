"""Costs that are measured, beside those that are known from elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from bpe_beam.training.measured_costs import MeasuredCosts

pytestmark = pytest.mark.quick

DOUBTS = (0.05, 0.05, 0.05)


def costs() -> MeasuredCosts:
    """Return costs of two kinds of one machine, of which the second waits for memory, and a third
    that nobody knows."""
    return MeasuredCosts([[0.4, 0.4, 0.4], [0.0, 0.4, 0.0]], [0.05, 0.05, 3.0])


def of(*usual: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the usual seconds of each kind."""
    return np.array(usual)


def test_usual_costs_until_something_is_measured() -> None:
    assert costs().seconds(of(1.0, 2.0, 0.5)) == 3.5


def test_a_slow_machine_is_slow_at_all_it_does() -> None:
    measured = costs()
    measured.measured(of(10.0, 0.0, 0.0), 20.0, DOUBTS)
    assert measured.seconds(of(1.0, 0.0, 0.0)) == pytest.approx(2.0, rel=0.05)
    assert measured.seconds(of(0.0, 1.0, 0.0)) == pytest.approx(2.0, rel=0.05)


def test_slow_memory_slows_only_what_waits_for_it() -> None:
    measured = costs()
    measured.measured(of(10.0, 0.0, 0.0), 10.0, DOUBTS)
    measured.measured(of(0.0, 10.0, 0.0), 20.0, DOUBTS)
    assert measured.seconds(of(1.0, 0.0, 0.0)) == pytest.approx(1.0, rel=0.1)
    assert measured.seconds(of(0.0, 1.0, 0.0)) == pytest.approx(2.0, rel=0.1)


def test_of_a_mixture_the_least_sure_kind_is_corrected_most() -> None:
    measured = costs()
    measured.measured(of(10.0, 0.0, 0.0), 10.0, DOUBTS)
    measured.measured(of(5.0, 0.0, 5.0), 20.0, DOUBTS)
    assert measured.seconds(of(1.0, 0.0, 0.0)) == pytest.approx(1.0, rel=0.1)
    assert measured.seconds(of(0.0, 0.0, 1.0)) == pytest.approx(3.0, rel=0.1)


def test_many_measurements_of_a_mixture_separate_its_kinds() -> None:
    made = np.random.default_rng(2)
    measured = costs()
    for _ in range(200):
        usual = made.uniform(0.0, 1.0, 3)
        measured.measured(usual, float(usual @ [0.7, 1.6, 4.0]), DOUBTS)
    found = [measured.seconds(row) for row in np.eye(3)]
    assert found == pytest.approx([0.7, 1.6, 4.0], rel=0.05)


def test_one_outlier_changes_little() -> None:
    measured = costs()
    for _ in range(5):
        measured.measured(of(1.0, 1.0, 0.0), 2.0, DOUBTS)
    measured.measured(of(1.0, 1.0, 0.0), 200.0, DOUBTS)
    assert measured.seconds(of(1.0, 1.0, 0.0)) < 2.2


def test_nothing_done_tells_nothing() -> None:
    measured = costs()
    measured.measured(of(0.0, 0.0, 0.0), 5.0, DOUBTS)
    assert measured.seconds(of(1.0, 1.0, 1.0)) == 3.0

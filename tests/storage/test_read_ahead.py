"""Calls that are made before their results are needed: in order, and never too many."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from bpe_beam.storage.read_ahead import read_ahead


@pytest.mark.parametrize("ahead", [0, 1, 2, 5, 50])
def test_results_are_in_order(ahead: int) -> None:
    def call(number: int) -> int:
        time.sleep(0.001 * (number % 3))
        return number

    assert [*read_ahead(call, range(20), ahead)] == [*range(20)]


def test_no_more_than_asked_for_is_taken() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(20):
            taken.append(number)
            yield number

    for number in read_ahead(lambda each: each, items(), 4, threads=2):
        assert len(taken) <= number + 4


def test_calls_wait_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=10)
    assert len([*read_ahead(lambda _: together.wait(), range(3), 3)]) == 3


def test_without_ahead_calls_are_made_here() -> None:
    here = threading.current_thread()
    assert [*read_ahead(lambda _: threading.current_thread(), range(2), 1)] == [here, here]


@pytest.mark.parametrize("ahead", [0, 3])
def test_an_error_ends_the_calls(ahead: int) -> None:
    called = []

    def call(number: int) -> int:
        called.append(number)
        if number == 2:
            raise ValueError("no")
        return number

    results: list[int] = []
    with pytest.raises(ValueError, match="no"):
        results.extend(read_ahead(call, range(1000), ahead))
    assert len(called) < 10

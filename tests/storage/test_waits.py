"""Cores that tasks have, and give back while they wait."""

from __future__ import annotations

import threading

import pytest

from bpe_beam.storage.waits import core_free, core_taken

pytestmark = pytest.mark.quick


def free(cores: threading.Semaphore) -> int:
    taken = 0
    while cores.acquire(blocking=False):
        taken += 1
    for _ in range(taken):
        cores.release()
    return taken


def test_a_core_is_free_during_a_wait_and_after_an_error() -> None:
    cores = threading.Semaphore(2)
    with pytest.raises(OSError, match="full"), core_taken(cores):
        assert free(cores) == 1
        with core_free():
            assert free(cores) == 2
        assert free(cores) == 1
        with core_free():
            raise OSError("full")
    assert free(cores) == 2


def test_a_thread_without_a_core_gives_none_back() -> None:
    cores = threading.Semaphore(1)
    with core_taken(cores):
        pass
    with core_free():
        assert free(cores) == 1
    assert free(cores) == 1

"""Beam as an engine: its flags, and what a driver sees of workers elsewhere."""

from __future__ import annotations

import pytest

from bpe_beam.engines import beam as running
from bpe_beam.errors import DataError
from bpe_beam.settings.common import RunSettings

pytestmark = pytest.mark.quick


def test_a_runner_elsewhere_is_looked_at_once_more_at_the_end() -> None:
    seen = []
    with running._watching(RunSettings(runner="FlinkRunner"), lambda: seen.append(1)):
        assert not seen
    assert len(seen) == 1
    with running._watching(RunSettings(), lambda: seen.append(2)):
        pass
    assert seen == [1]


def test_a_look_that_fails_fails_nothing() -> None:
    def look() -> None:
        raise DataError("no connection")

    with running._watching(RunSettings(runner="FlinkRunner"), look):
        pass


def flags(*flag_text: str, workers: int = 9) -> list[str]:
    run = RunSettings(runner="FnApiRunner", runner_options=flag_text)
    return running._runner(run, workers)[1]


def test_threads_of_a_runner_in_process() -> None:
    mode, count = "--direct_running_mode=", "--direct_num_workers="
    assert flags(workers=3) == [f"{count}3", f"{mode}multi_threading"]
    assert flags(workers=1) == [f"{count}1", f"{mode}in_memory"]
    assert flags(f"{mode}in_memory", workers=2) == [f"{mode}in_memory", f"{count}2"]
    assert flags(f"{count}4", workers=4) == [f"{count}4", f"{mode}multi_threading"]

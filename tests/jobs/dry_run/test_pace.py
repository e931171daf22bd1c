"""The pace of a machine, by a clock that runs as a faster or slower machine's would."""

from __future__ import annotations

import time

import pytest

from bpe_beam.jobs.dry_run.pace import REFERENCE_SECONDS, Pace, pace

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("times", [0.5, 1.0, 2.0])
def test_pace(monkeypatch: pytest.MonkeyPatch, times: float) -> None:
    seconds = iter([7.0, 7.0 + times * 1000 * REFERENCE_SECONDS])
    monkeypatch.setattr(time, "thread_time", lambda: next(seconds))
    assert pace(1000) == pytest.approx(times)


def test_the_pace_while_other_work_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_beam.jobs.dry_run.pace._SECONDS", 0.001)
    with Pace() as here:
        time.sleep(0.1)
    assert here.mean > 0

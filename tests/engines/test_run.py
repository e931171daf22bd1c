"""Which engine runs a job, and the local one: order, errors, interrupts, processes, metrics."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from called_elsewhere import fail_or_write_later, kill_oneself, pid_of
from waiting import wait_until

from bpe_beam.engines.run import (
    LocalEngine,
    default_workers,
    local_workers,
    run_summary,
    workers_of,
)
from bpe_beam.errors import DataError, UsageError
from bpe_beam.settings.common import RunSettings
from bpe_beam.storage.writing import sync_file
from bpe_beam.workers.task_results import MetricSums, TaskResult

pytestmark = pytest.mark.quick

WAIT = 60


def test_results_are_in_the_order_of_the_calls() -> None:
    first_may_end = threading.Event()

    def call(number: int, letter: str) -> str:
        if number == 0:
            assert first_may_end.wait(WAIT)
        else:
            first_may_end.set()
        return f"{number}{letter}"

    with local_workers(2) as workers:
        assert workers.map(call, range(3), "abc") == ["0a", "1b", "2c"]
        assert workers.map(call, [], []) == []


def test_after_an_error_running_calls_end_and_no_other_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, ended = [], []
    calls: list[Future[None]] = []

    def call(number: int) -> None:
        started.append(number)
        if number == 1:
            raise DataError("the second")
        wait_until(lambda: len(calls) > 1 and calls[1].done(), "the error")
        ended.append(number)

    with local_workers(2) as workers, monkeypatch.context() as patch:
        submit = workers._threads.submit

        def kept(*args: Any) -> Future[None]:
            calls.append(submit(*args))
            return calls[-1]

        patch.setattr(workers._threads, "submit", kept)
        with pytest.raises(DataError, match="the second"):
            workers.map(call, range(100))
    assert sorted(started) == [0, 1]
    assert ended == [0]


@pytest.mark.parametrize("spare", [0, 1])
def test_a_spare_task_runs_while_another_waits_for_the_disk(
    spare: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, other_ran = threading.Event(), threading.Event()
    running: list[int] = []

    def wait_for_disk(descriptor: int) -> None:
        waiting.set()
        other_ran.wait(WAIT if spare else 0.1)

    def call(number: int) -> tuple[bool, int]:
        running.append(number)
        at_once = len(running)
        if number == 0:
            with (tmp_path / "file").open("w") as file:
                running.remove(number)
                sync_file(file.fileno())
                running.append(number)
            at_once = max(at_once, len(running))
        else:
            assert waiting.wait(WAIT)
            other_ran.set()
        running.remove(number)
        return other_ran.is_set(), at_once

    monkeypatch.setattr("os.fsync", wait_for_disk)
    with local_workers(1, spare=spare) as workers:
        first, *others = workers.map(call, range(5))
    assert first == (bool(spare), 1)
    assert others == [(True, 1)] * 4


def test_each_step_measures_the_processor_time_of_its_tasks() -> None:
    """And not the time in which a task waits."""

    def work(number: int) -> TaskResult:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        time.sleep(0.2)
        return TaskResult([number], {}, {"size": number})

    measured = MetricSums()
    with local_workers(2) as workers:
        assert LocalEngine(workers, measured).run("CountSplit", work, [1, 2, 3], int) == [1, 2, 3]
    taken = measured.distributions["count_split_processor_microseconds"]
    assert taken["count"] == 3
    assert 20_000 <= taken["min"] <= taken["max"] < 150_000
    assert measured.distributions["size"]["sum"] == 6


def test_an_interrupt_waits_for_nothing() -> None:
    running, may_end = threading.Event(), threading.Event()
    started, ended = [], []

    def call(number: int) -> None:
        started.append(number)
        running.set()
        assert may_end.wait(WAIT)
        ended.append(number)

    def interrupt() -> None:
        assert running.wait(WAIT)
        time.sleep(0.2)  # until the main thread waits: a signal just before is noticed after it
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.get_ident()
    # A process that was started in the background may ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), local_workers(1) as workers:
            threading.Thread(target=interrupt).start()
            workers.map(call, range(3))
        assert (started, ended) == ([0], [])
    finally:
        may_end.set()
        signal.signal(signal.SIGINT, before)


def test_worker_processes_run_calls() -> None:
    with local_workers(2, in_processes=True) as workers:
        assert workers.map(divmod, [7, 8], [2, 3]) == [(3, 1), (2, 2)]
        assert os.getpid() not in workers.map(pid_of, range(4))
        with pytest.raises(ZeroDivisionError):
            workers.map(divmod, [1, 1], [1, 0])
    with local_workers(1, in_processes=True) as workers:
        assert workers.map(pid_of, [0]) == [os.getpid()]


def test_after_an_error_running_calls_of_processes_end(tmp_path: Path) -> None:
    written = tmp_path / "written"
    with (
        pytest.raises(ValueError, match="this call fails"),
        local_workers(2, in_processes=True) as workers,
    ):
        workers.map(fail_or_write_later, [tmp_path / "begun"] * 2, [None, written])
    assert written.read_text() == "whole"


def test_the_death_of_a_worker_process_is_an_error() -> None:
    with (
        pytest.raises(DataError, match="died by signal 9"),
        local_workers(2, in_processes=True) as workers,
    ):
        workers.map(kill_oneself, range(4))


def doubled(others: list[int], element: int) -> TaskResult:
    outputs = [(element % 2, 2 * element), (len(others), -1)]
    return TaskResult(outputs, {"tokens_made": 1, "dead_letters": 0}, {"size": element})


def test_steps_and_their_metrics() -> None:
    measured = MetricSums()
    with local_workers(2) as workers:
        engine = LocalEngine(workers, measured)
        rows = engine.tasks("Tasks", "abc")
        assert rows == ["a", "b", "c"]
        pairs = engine.run("Double", doubled, [3, 4, 5], tuple[int, int], rows)
        gathered = engine.gather("Gather", pairs, [(1, 7), (2, 9)])
        assert gathered == [(0, [8]), (1, [6, 10, 7]), (2, [9]), (3, [-1, -1, -1])]
    del measured.distributions["double_processor_microseconds"]
    assert measured.to_json() == {
        "counters": {"tokens_made": 3},
        "distributions": {"size": {"count": 3, "sum": 12, "min": 3, "max": 5}},
    }
    assert measured.rate("tokens_made", 2) == 2
    assert measured.rate("dead_letters", 2) is None


def test_the_local_engine_runs_jobs_without_a_runner() -> None:
    assert RunSettings().is_local
    assert RunSettings(workers=3).is_local
    assert not RunSettings(runner="FnApiRunner").is_local
    # A flag of a runner means Beam's own one in this process.
    flagged = RunSettings(runner_options=("--direct_num_workers=3",))
    assert flagged.in_process
    assert not flagged.is_local


def test_workers() -> None:
    assert workers_of(RunSettings()) == default_workers()
    assert workers_of(RunSettings(workers=3)) == 3
    assert workers_of(RunSettings(workers=3), tasks=2) == 2
    assert workers_of(RunSettings(workers=3), tasks=0) == 1
    assert workers_of(RunSettings(runner_options=("--direct_num_workers=4",)), tasks=2) == 4


def test_the_summary_names_the_runner() -> None:
    assert run_summary(RunSettings(workers=3), 9) == {"runner": "in process", "workers": 3}
    assert run_summary(RunSettings(runner="FnApiRunner", workers=3), 2) == {
        "runner": "in process",
        "workers": 2,
    }
    assert run_summary(RunSettings(runner="FlinkRunner"), 9) == {
        "runner": "FlinkRunner",
        "workers": None,
    }


@pytest.mark.parametrize("runner", [None, "FnApiRunner", "DirectRunner"])
def test_beams_own_worker_processes_are_refused(runner: str | None) -> None:
    flags = ("--direct_running_mode=multi_processing",)
    with pytest.raises(UsageError, match="must be multi_threading or in_memory, got multi_proc"):
        RunSettings(runner=runner, runner_options=flags)
    assert not RunSettings(runner="FlinkRunner", runner_options=flags).in_process

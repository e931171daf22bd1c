"""Runs the steps of a job: on this machine, without Beam, or on a Beam runner if one is chosen.

On this machine tasks run on threads, since the native kernels release the GIL. Tasks that keep the
GIL run in worker processes instead, one for each thread. There may be spare threads, whose tasks
run while others wait for the disk. A step begins when the step before it has ended.
After an error no task starts; running tasks finish first. After Ctrl-C the engine does not wait: a
file that a task leaves incomplete is ignored by later runs.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bpe_beam.engines.steps import (
    Collection,
    Engine,
    EngineSettings,
    Steps,
    template_of,
    timed,
)
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.storage.writing import core_taken
from bpe_beam.workers.task_results import MetricSums, TaskResult

if TYPE_CHECKING:
    from bpe_beam.workers.processes import WorkerProcesses

R = TypeVar("R")

_GOLDEN = 0.6180339887498949
"""The fractions of its multiples are spread evenly: it is the golden ratio."""


def default_workers() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalWorkers:
    """Threads that call functions, or have worker processes call them. Made by `local_workers`."""

    def __init__(
        self, threads: ThreadPoolExecutor, cores: int, processes: WorkerProcesses | None
    ) -> None:
        self._threads = threads
        self._cores = threading.Semaphore(cores)
        self._processes = processes

    def map(self, function: Callable[..., R], *arguments: Iterable[Any]) -> list[R]:
        """Return the results of calls in their order, as the built-in `map` does.

        With worker processes, the function must be picklable. The error of the first call that has
        one is raised; no call starts after an error.
        """
        stopped = threading.Event()

        def call(*values: Any) -> R | None:
            try:
                with core_taken(self._cores):
                    if stopped.is_set():
                        return None
                    if self._processes is None:
                        return function(*values)
                    return self._processes.call(function, *values)
            except BaseException as error:
                stopped.set()
                if isinstance(error, Exception):
                    raise
                # SystemExit, for example, must end the task and not the job's process.
                raise RuntimeError(f"a task ended with {error!r}") from error

        calls = [self._threads.submit(call, *values) for values in zip(*arguments, strict=True)]
        try:
            return [cast(R, each.result()) for each in calls]
        except Exception:
            wait(calls)  # or worker processes would be killed amid their tasks
            raise
        except BaseException:
            stopped.set()
            raise


@contextlib.contextmanager
def local_workers(
    count: int, *, in_processes: bool = False, spare: int = 0
) -> Iterator[LocalWorkers]:
    """Yield workers for the time of a block."""
    threads = ThreadPoolExecutor(count if in_processes else count + spare, "worker")
    wait_for_tasks = True
    try:
        with contextlib.ExitStack() as stack:
            processes = None
            if in_processes and count > 1:
                from bpe_beam.workers.processes import WorkerProcesses

                processes = stack.enter_context(WorkerProcesses(count))
            yield LocalWorkers(threads, count, processes)
    except KeyboardInterrupt:
        wait_for_tasks = False
        raise
    finally:
        threads.shutdown(wait_for_tasks, cancel_futures=True)


def scattered(count: int) -> list[int]:
    """Return the numbers below `count` in an order whose every beginning is spread evenly."""
    return sorted(range(count), key=lambda number: number * _GOLDEN % 1)


class LocalEngine:
    """Runs each step of a job as soon as it is described; a collection is a list. An `Engine`."""

    def __init__(self, workers: LocalWorkers, measured: MetricSums) -> None:
        self._workers = workers
        self._measured = measured

    def tasks(self, label: str, tasks: Iterable[str]) -> list[str]:
        return list(tasks)

    def run(
        self,
        label: str,
        function: Callable[..., TaskResult],
        elements: list[Any],
        output_type: Any,
        *whole: list[Any],
    ) -> list[Any]:
        """See `Engine.run`; the outputs are in the order of the elements."""
        # Neighbours are alike, such as the files of one language: the time left is known earlier
        # if those that run first are from everywhere.
        order = scattered(len(elements))
        call = partial(timed(label, function), *whole)
        unordered = self._workers.map(call, [elements[i] for i in order])
        by_number = dict(zip(order, unordered, strict=True))
        results = [by_number[i] for i in range(len(elements))]
        for result in results:
            self._measured.record(result)
        return [output for result in results for output in result.outputs]

    def gather(
        self, label: str, pairs: list[tuple[int, Any]], known: Iterable[tuple[int, Any]] = ()
    ) -> list[tuple[int, list[Any]]]:
        """See `Engine.gather`; the result is sorted by key."""
        values: dict[int, list[Any]] = defaultdict(list)
        for key, value in (*pairs, *known):
            values[key].append(value)
        return sorted(values.items())


def workers_of(run: EngineSettings, tasks: int | None = None) -> int:
    """Return how many tasks of a job run at once in this process."""
    chosen = run.runner_flag("--direct_num_workers")
    if chosen is not None and chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    workers = run.workers or default_workers()
    return workers if tasks is None else max(1, min(workers, tasks))


def run_summary(run: EngineSettings, tasks: int) -> JsonObject:
    """Return the runner and the workers of a job, for its summary."""
    if run.in_process:
        return {"runner": "in process", "workers": workers_of(run, tasks)}
    return {"runner": run.runner, "workers": None}


def run_steps(
    run: EngineSettings,
    label: str,
    steps: Steps,
    tasks: int,
    measured: MetricSums,
    watch: Callable[[], None],
    *,
    min_ram: str,
    holds_gil: bool = False,
    spare: int = 0,
    finish: Callable[[], str] | None = None,
) -> None:
    """Run the steps of a job to their end.

    A template, which raises TemplateMade here, calls `finish` on a worker as its last step.
    """
    if run.is_local:
        # Threads without a task cost nothing, and later steps may have more tasks.
        count = workers_of(run, tasks if holds_gil else None)
        with local_workers(count, in_processes=holds_gil, spare=spare) as workers:
            steps(LocalEngine(workers, measured))
        return
    from bpe_beam.engines.beam import StepsTransform, run_pipeline

    if template_of(run) and finish is not None:
        steps = _with_end(steps, finish)
    transform = StepsTransform(steps, min_ram)
    run_pipeline(run, label, transform, workers_of(run, tasks), measured, watch)


def _with_end(steps: Steps, finish: Callable[[], str]) -> Steps:
    """Return the steps with a last one, which finishes the job when all tasks have ended."""

    def all_steps(engine: Engine) -> Collection:
        # Not by a whole collection, for which Dataflow uses a coder that pickles.
        keyed = engine.run("KeyResults", _under_one_key, steps(engine), tuple[int, str])
        results = engine.gather("GatherResults", keyed)
        return engine.run("FinishFolder", partial(_finish, finish), results, str)

    return all_steps


def _under_one_key(name: str) -> TaskResult:
    return TaskResult([(0, name)])


def _finish(finish: Callable[[], str], _: tuple[int, Iterable[str]]) -> TaskResult:
    return TaskResult([finish()])

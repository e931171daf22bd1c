"""The local engine: the steps of a job on this machine, without Beam.

Tasks run on threads, since the native kernels release the GIL. Tasks that keep the GIL run in
worker processes instead, one for each thread. There may be spare threads, whose tasks run while
others wait for the disk. A step begins when the step before it has ended.
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

from bpe_beam.storage.waits import core_taken
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
        unordered = self._workers.map(partial(function, *whole), [elements[i] for i in order])
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

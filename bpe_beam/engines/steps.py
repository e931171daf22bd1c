"""The steps of a job, for any engine: which tasks there are, and what travels between them.

A job describes its steps once, as a function of an `Engine`. What a task does is in `workers/`;
only references to files travel from one step to the next.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from bpe_beam.workers.task_results import TaskResult

PROCESSOR_TIME = "_processor_microseconds"  # the end of the name of a distribution


class EngineSettings(Protocol):
    """The settings of a run that decide where its tasks run."""

    @property
    def runner(self) -> str | None: ...
    @property
    def runner_options(self) -> tuple[str, ...]: ...
    @property
    def workers(self) -> int | None: ...
    @property
    def debug(self) -> bool: ...
    @property
    def is_local(self) -> bool: ...
    @property
    def in_process(self) -> bool: ...
    @property
    def is_dataflow(self) -> bool: ...
    def runner_flag(self, name: str) -> str | None: ...


class TemplateMade(Exception):
    """The pipeline was only described, and runs later: there is no result."""


def template_of(run: EngineSettings) -> str | None:
    """Return where the job's description goes, if the job is only to be described."""
    return run.runner_flag("--template_location")


Collection = Any
"""The elements of a step: a list, or a PCollection, whose elements exist only when it runs."""


class Engine(Protocol):
    """Runs the steps of a job. Each step has a label, which is unique in the job."""

    def tasks(self, label: str, tasks: Iterable[str]) -> Collection:
        """Return the tasks of the first step as a collection that is spread over the workers."""

    def run(
        self,
        label: str,
        function: Callable[..., TaskResult],
        elements: Collection,
        output_type: Any,
        *whole: Collection,
    ) -> Collection:
        """Run a task for each element, and return the outputs of all tasks."""

    def gather(
        self, label: str, pairs: Collection, known: Iterable[tuple[int, Any]] = ()
    ) -> Collection:
        """Return (key, all of its values) for each key."""


def timed(label: str, function: Callable[..., TaskResult]) -> Callable[..., TaskResult]:
    """Return the function of a step with one more value: the processor time of its thread."""
    return partial(_timed, processor_time(label), function)


def processor_time(label: str) -> str:
    """Return the distribution that has the processor time of each task of a step."""
    words = re.sub("(?<=[a-z])(?=[A-Z])", "_", label).lower()
    return f"{words}{PROCESSOR_TIME}"


def _timed(name: str, function: Callable[..., TaskResult], *arguments: Any) -> TaskResult:
    started = time.thread_time()
    result = function(*arguments)
    taken = round(1e6 * (time.thread_time() - started))
    return result._replace(values={**result.values, name: taken})


Steps = Callable[[Engine], Collection]
"""The steps of a job; the last one returns names (of parts, shards or tasks)."""

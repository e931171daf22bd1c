"""Runs the steps of a job: on the local engine, or on Beam if a runner is chosen.

Light: Beam is imported only for a runner.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bpe_beam.engines.local import LocalEngine, default_workers, local_workers
from bpe_beam.engines.steps import Collection, Engine, Steps
from bpe_beam.errors import UsageError
from bpe_beam.progress import Progress
from bpe_beam.settings.common import RunSettings
from bpe_beam.storage.names import is_local
from bpe_beam.workers.measured import Measured, TaskResult

if TYPE_CHECKING:
    from bpe_beam.settings.count import CountSettings
    from bpe_beam.settings.tokenize import TokenizeSettings


class TemplateMade(Exception):
    """The pipeline was only described, and runs later: there is no result."""


def workers_of(run: RunSettings, tasks: int | None = None) -> int:
    """Return how many tasks of a job run at once in this process."""
    chosen = run.runner_flag("--direct_num_workers")
    if chosen is not None and chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    workers = run.workers or default_workers()
    return workers if tasks is None else max(1, min(workers, tasks))


def run_summary(run: RunSettings, tasks: int) -> dict[str, Any]:
    """Return the rows of a summary that say how its job ran."""
    if run.in_process:
        return {"runner": "in process", "workers": workers_of(run, tasks)}
    return {"runner": run.runner, "workers": None}


def template_of(run: RunSettings) -> str | None:
    """Return where the job's description goes, if the job is only to be described."""
    return run.runner_flag("--template_location")


def run_steps(
    run: RunSettings,
    label: str,
    steps: Steps,
    tasks: int,
    measured: Measured,
    watch: Callable[[], None],
    *,
    min_ram: str,
    holds_gil: bool = False,
    spare: int = 0,
    finish: tuple[str, CountSettings | TokenizeSettings] | None = None,
) -> None:
    """Run the steps of a job to their end."""
    if run.is_local:
        # Threads without a task cost nothing, and later steps may have more tasks.
        count = workers_of(run, tasks if holds_gil else None)
        with local_workers(count, in_processes=holds_gil, spare=spare) as workers:
            steps(LocalEngine(workers, measured))
        return
    from bpe_beam.engines.beam import StepsTransform, run_pipeline

    if template_of(run) and finish is not None:
        steps = _with_end(steps, *finish)
    transform = StepsTransform(steps, min_ram)
    run_pipeline(run, label, transform, workers_of(run, tasks), measured, watch)


def _with_end(steps: Steps, job: str, settings: CountSettings | TokenizeSettings) -> Steps:
    """Return the steps with a last one, which finishes the job when all tasks have ended."""
    for name in settings.input.inputs:
        if name.startswith("@") and is_local(name[1:]):
            raise UsageError(f"must be lists at URLs for a template, got {name}", ("inputs",))
    # No setting of the launching machine; --overwrite must not remove the results.
    here = RunSettings(quiet=True, storage_options=settings.run.storage_options)
    finish = partial(_finish, job, replace(settings, run=here))

    def all_steps(engine: Engine) -> Collection:
        # Not by a whole collection, for which Dataflow uses a coder that pickles.
        keyed = engine.run("KeyResults", _under_one_key, steps(engine), tuple[int, str])
        return engine.run("FinishFolder", finish, engine.gather("GatherResults", keyed), str)

    return all_steps


def _under_one_key(name: str) -> TaskResult:
    return TaskResult([(0, name)])


def _finish(
    job: str, settings: CountSettings | TokenizeSettings, _: tuple[int, Iterable[str]]
) -> TaskResult:
    """Run the job to its end; the output is the URL of its folder."""
    importlib.import_module(f"bpe_beam.jobs.{job}").run(settings, Progress("none"))
    return TaskResult([settings.output])

"""Runs the steps of a job: on the local engine, or on Beam if a runner is chosen.

Light: Beam is imported only for a runner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from bpe_beam.engines.local import LocalEngine, default_workers, local_workers
from bpe_beam.engines.steps import Collection, Engine, EngineSettings, Steps, template_of
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.workers.task_results import MetricSums, TaskResult


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

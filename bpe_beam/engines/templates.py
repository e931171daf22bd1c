"""Jobs whose driver does not wait for the pipeline: Dataflow's templates.

The launcher of a template only writes the job's description (`--template_location`). The end of
the job is a last step of the pipeline: on a worker, it runs the same job on the same folder, on the
local engine. That run takes over the results of the pipeline, and makes what is missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from bpe_beam.engines.steps import Collection, Engine, Steps
from bpe_beam.errors import UsageError
from bpe_beam.progress import Progress
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.storage.names import is_local
from bpe_beam.workers.measured import TaskResult


def with_end(steps: Steps, job: str, settings: CountSettings | TokenizeSettings) -> Steps:
    """Return the steps with a last one, which finishes the job when all tasks have ended.

    Args:
        steps: The steps of the job.
        job: The job's name.
        settings: The driver's settings.

    Raises:
        UsageError: A list of inputs is on the driver's machine, where workers cannot read it.
    """
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

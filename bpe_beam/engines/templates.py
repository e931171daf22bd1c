"""Jobs whose driver does not wait for their pipeline: those that Dataflow's templates describe.

The launcher of a template writes the job's description down (`--template_location`) and goes; the
pipeline is started afterwards, by Dataflow. So what the driver does at the end of a job is a last
step of the pipeline: on a worker it runs the same job on the same folder, in process, which takes
over what the pipeline has made and finishes it. Whatever had to be done again is done there.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import apache_beam as beam

from bpe_beam.errors import UsageError
from bpe_beam.progress import Progress
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.storage.names import is_local

_FLAG = "--template_location="


class TemplateMade(Exception):
    """Instead of an end of the pipeline: it has been described, and runs later."""


def template_of(run: RunSettings) -> str | None:
    """Where the job's description goes, if that is all that is asked for."""
    found = [flag for flag in run.runner_options if flag.startswith(_FLAG)]
    return found[-1].removeprefix(_FLAG) if found else None


def summary_of_template(job: str, settings: CountSettings | TokenizeSettings) -> dict[str, Any]:
    """The summary of a job that was only described."""
    return {"job": job, "output": settings.output, "template": template_of(settings.run)}


class FinishJob(beam.PTransform):
    """Finish a job where its pipeline runs, once all that it takes has been made.

    The output is the folder's URL.

    Args:
        job: The job.
        settings: Its settings, as the driver has them.

    Raises:
        UsageError: A list of inputs that workers cannot read.
    """

    def __init__(self, job: str, settings: CountSettings | TokenizeSettings) -> None:
        super().__init__()
        for name in settings.input.inputs:
            if name.startswith("@") and is_local(name[1:]):
                raise UsageError(f"must be lists at URLs for a template, got {name}", ("inputs",))
        # Nothing of the launching machine, and not again what it has removed.
        here = RunSettings(quiet=True, storage_options=settings.run.storage_options)
        self.job = job
        self.settings = replace(settings, run=here)

    def expand(self, made: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Return the URL of the finished folder."""
        # Not as a side input, which Dataflow gives a coder of its own, a pickling one.
        return (
            made
            | "Key" >> beam.ParDo(_UnderOneKey())
            | "Gather" >> beam.GroupByKey()
            | "FinishFolder" >> beam.ParDo(_Finish(self.job, self.settings))
        )


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(tuple[int, str])
class _UnderOneKey(beam.DoFn):
    """A name for one worker to gather."""

    def process(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield the name under the one key."""
        yield 0, name


@beam.typehints.with_input_types(tuple[int, Iterable[str]])
@beam.typehints.with_output_types(str)
class _Finish(beam.DoFn):
    """The driver's part."""

    def __init__(self, job: str, settings: CountSettings | TokenizeSettings) -> None:
        self.job = job
        self.settings = settings

    def process(self, _: tuple[int, Iterable[str]]) -> Iterator[str]:
        """Run the job to its end, now that everything is made."""
        job = importlib.import_module(f"bpe_beam.jobs.{self.job}")
        job.run(self.settings, Progress("none"))
        yield self.settings.output

"""Jobs whose driver does not wait for the pipeline: Dataflow's templates.

The launcher of a template only writes the job's description (`--template_location`). The end of
the job is a last step of the pipeline: on a worker, it runs the same job on the same folder, on the
local engine. That run takes over the results of the pipeline, and makes what is missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

import apache_beam as beam

from bpe_beam.errors import UsageError
from bpe_beam.progress import Progress
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.storage.names import is_local


class FinishJob(beam.PTransform):
    """Finishes a job on a worker, when all tasks have ended; the output is the folder's URL.

    Args:
        job: The job's name.
        settings: The driver's settings.

    Raises:
        UsageError: A list of inputs is on the driver's machine, where workers cannot read it.
    """

    def __init__(self, job: str, settings: CountSettings | TokenizeSettings) -> None:
        super().__init__()
        for name in settings.input.inputs:
            if name.startswith("@") and is_local(name[1:]):
                raise UsageError(f"must be lists at URLs for a template, got {name}", ("inputs",))
        # No setting of the launching machine; --overwrite must not remove the results.
        here = RunSettings(quiet=True, storage_options=settings.run.storage_options)
        self.job = job
        self.settings = replace(settings, run=here)

    def expand(self, made: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Return the URL of the finished folder."""
        # Not by a side input, for which Dataflow uses a coder that pickles.
        return (
            made
            | "Key" >> beam.ParDo(_UnderOneKey())
            | "Gather" >> beam.GroupByKey()
            | "FinishFolder" >> beam.ParDo(_Finish(self.job, self.settings))
        )


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(tuple[int, str])
class _UnderOneKey(beam.DoFn):
    """Puts every name under one key."""

    def process(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield the name under the one key."""
        yield 0, name


@beam.typehints.with_input_types(tuple[int, Iterable[str]])
@beam.typehints.with_output_types(str)
class _Finish(beam.DoFn):
    """Runs the end of the job."""

    def __init__(self, job: str, settings: CountSettings | TokenizeSettings) -> None:
        self.job = job
        self.settings = settings

    def process(self, _: tuple[int, Iterable[str]]) -> Iterator[str]:
        """Run the job to its end, and yield the URL of its folder."""
        job = importlib.import_module(f"bpe_beam.jobs.{self.job}")
        job.run(self.settings, Progress("none"))
        yield self.settings.output

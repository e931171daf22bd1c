"""Runs a pipeline on the chosen runner; in process unless told otherwise."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from bpe_beam.errors import DataError
from bpe_beam.jobs.dataflow import FLAGS, is_dataflow
from bpe_beam.jobs.settings import RunSettings

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.runners.runner import PipelineRunner


def default_workers() -> int:
    """Threads in process: one a core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers_of(run: RunSettings) -> int:
    """How many threads a job in process uses."""
    return run.workers or default_workers()


def run_pipeline(
    run: RunSettings, build: Callable[[beam.Pipeline], object], tasks: int
) -> dict[str, int]:
    """Builds a pipeline, runs it, and waits for its end.

    Args:
        run: Which runner, and its flags.
        build: Adds the steps to the pipeline.
        tasks: How many elements there are to spread: in process, no more threads are started.

    Returns:
        Our counters by name, summed over the steps.

    Raises:
        DataError: A runner that ends without success and without an error of its own.
    """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.runner import PipelineState

    from bpe_beam.transforms import counters

    if not run.debug:
        logging.getLogger("apache_beam").setLevel(logging.ERROR)
    pipeline = beam.Pipeline(
        runner=_runner(run), options=PipelineOptions(_flags(run, tasks), pipeline_type_check=True)
    )
    build(pipeline)
    result = pipeline.run()
    state = result.wait_until_finish()
    if state not in (None, PipelineState.DONE):
        raise DataError(f"the runner ended the job in state {state}; its log tells why")
    return counters.totals(result.metrics())


def _runner(run: RunSettings) -> str | PipelineRunner:
    if not run.in_process:
        return str(run.runner)
    # By class, never by the alias DirectRunner, which tries to download another runner first.
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    return FnApiRunner()


def _flags(run: RunSettings, tasks: int) -> list[str]:
    # First: what the user says of the same counts more.
    flags = [*(FLAGS if is_dataflow(run.runner) else ()), *run.runner_options]
    given = {flag.partition("=")[0] for flag in flags}
    if run.in_process and "--direct_num_workers" not in given:
        workers = max(1, min(workers_of(run), tasks))
        flags.append(f"--direct_num_workers={workers}")
        if "--direct_running_mode" not in given:
            mode = "multi_threading" if workers > 1 else "in_memory"
            flags.append(f"--direct_running_mode={mode}")
    return flags

"""Runs a pipeline on the chosen runner; in process unless told otherwise."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from bpe_beam.engines.cancel import cancelled_if_left
from bpe_beam.engines.runner_errors import was_interrupted
from bpe_beam.errors import DataError
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.dataflow import is_dataflow

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.runner import PipelineRunner

    from bpe_beam.settings.count import CountSettings
    from bpe_beam.settings.tokenize import TokenizeSettings
    from bpe_beam.transforms.metrics import Measured

MakeTransform = Callable[[str | None], Any]
"""Makes a Beam transform; gets the name of the processes that run tasks, or None."""

_MODE = "--direct_running_mode"
_PROCESSES = "multi_processing"
_WATCH_SECONDS = 2.0

_DATAFLOW_FLAGS = (
    "--no_save_main_session",
    "--experiments=disable_logging_submission_environment",
)
"""For every job on Dataflow. Beam would otherwise send everything that is defined in the program
that was started, and a list of this environment's packages, with the paths and repositories that
they were installed from."""


def default_workers() -> int:
    """Threads in process: one a core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers_of(run: RunSettings) -> int:
    """How many threads a job in process uses."""
    return run.workers or default_workers()


def summary_of(run: RunSettings, tasks: int) -> dict[str, Any]:
    """What a summary says of how its job ran: the runner, and in process how many work at once.

    Args:
        run: How it ran.
        tasks: How many elements there were to spread.
    """
    if run.in_process:
        return {"runner": "in process", "workers": _workers(run, tasks)}
    return {"runner": run.runner, "workers": None}


def run_pipeline(
    run: RunSettings,
    label: str,
    make: MakeTransform,
    tasks: int,
    measured: Measured,
    watch: Callable[[], None],
    *,
    holds_gil: bool = False,
    finish: tuple[str, CountSettings | TokenizeSettings] | None = None,
) -> None:
    """Run a transform as a pipeline, and wait for its end.

    Args:
        run: Which runner, and its flags.
        label: The label of the transform in the pipeline.
        make: Makes the transform; see `worker_processes` for the processes.
        tasks: The number of elements to spread: in process, no more threads are started.
        measured: Gets the pipeline's metrics.
        watch: Called every few seconds where workers are elsewhere and cannot report.
        holds_gil: Whether tasks hold Python's lock: in process, worker processes then run them.
        finish: The job's name and its settings. A template's pipeline ends with this job's run, see
            `FinishJob`.

    Raises:
        DataError: The runner ends without success and without an error of its own, or a worker
            process died.
        TemplateMade: The pipeline was only described, for later.
    """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
    from apache_beam.runners.runner import PipelineState

    from bpe_beam.engines.templates import FinishJob, TemplateMade, template_of

    if not run.debug:
        logging.getLogger("apache_beam").setLevel(logging.ERROR)
        _quiet_threads()
    options = PipelineOptions(_flags(run, tasks), pipeline_type_check=True)
    pipeline = beam.Pipeline(runner=_runner(run), options=options)
    with _processes(run, tasks, holds_gil) as pool, _watching(run, watch), _interrupts(run.debug):
        made = pipeline | label >> make(pool)
        if template_of(run) and finish is not None:
            made | "Finish" >> FinishJob(*finish)
        result = pipeline.run()
        if template_of(run):
            raise TemplateMade
        if run.in_process:
            state = result.wait_until_finish()
        else:
            with cancelled_if_left(result, options.view_as(FlinkRunnerOptions).flink_master):
                state = result.wait_until_finish()
    if state not in (None, PipelineState.DONE):
        raise DataError(f"the runner ended the job in state {state}; its log tells why")
    measured.add(result.metrics())


@contextlib.contextmanager
def _interrupts(debug: bool) -> Iterator[None]:
    """Raise an interrupt as KeyboardInterrupt, and silence Beam's other threads after it."""
    try:
        yield
    except BaseException as error:
        if not was_interrupted(error):
            raise
        if not debug:
            logging.getLogger("apache_beam").setLevel(logging.CRITICAL + 1)
        raise KeyboardInterrupt from error


def _quiet_threads() -> None:
    """Silence the threads of Beam's workers in this process when they end.

    Flink and Spark hang up on them when a job has ended, upon which each raises; if the next job
    follows, there is time for that to be shown.
    """
    if threading.excepthook is not _without_hung_up:
        _shown.append(threading.excepthook)
        threading.excepthook = _without_hung_up


_shown: list[Callable[[threading.ExceptHookArgs], object]] = []


def _without_hung_up(args: threading.ExceptHookArgs) -> None:
    of_grpc = args.exc_type.__module__.partition(".")[0] == "grpc"
    if not (of_grpc and "StatusCode.CANCELLED" in str(args.exc_value)):
        _shown[-1](args)


@contextlib.contextmanager
def _processes(run: RunSettings, tasks: int, holds_gil: bool) -> Iterator[str | None]:
    """Processes for the work, if it wants them, or the user does; a flag of the runner decides."""
    from bpe_beam.workers.processes import worker_processes

    mode = _flag(run, _MODE)
    count = _workers(run, tasks)
    wanted = holds_gil and count > 1 if mode is None else mode == _PROCESSES
    if not run.in_process or not wanted:
        yield None
        return
    with worker_processes(count) as pool:
        yield pool


@contextlib.contextmanager
def _watching(run: RunSettings, watch: Callable[[], None]) -> Iterator[None]:
    """Call `watch` every few seconds, unless the runner is in process."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_WATCH_SECONDS):
            with contextlib.suppress(DataError):  # the next look may have more luck
                watch()

    if run.in_process:
        yield
        return
    watcher = threading.Thread(target=look, name="watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    with contextlib.suppress(DataError):
        watch()


def _runner(run: RunSettings) -> PipelineRunner:
    if not run.in_process:
        return _cached_runner(str(run.runner), run.runner_options)
    # By class, never by the alias DirectRunner, which tries to download another runner first.
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    return FnApiRunner()


@functools.lru_cache(maxsize=1)
def _cached_runner(name: str, flags: tuple[str, ...]) -> PipelineRunner:
    """The runner of all pipelines that a job launches with these flags.

    Beam would start a job server for each, a Java process of 400 MB that lives as long as this one.
    """
    from apache_beam.runners.portability.job_server import JobServer, StopOnExitJobServer
    from apache_beam.runners.portability.portable_runner import PortableRunner
    from apache_beam.runners.runner import create_runner

    runner = create_runner(name)
    if isinstance(runner, PortableRunner):
        start = runner.default_job_server
        started: list[JobServer] = []

        def server(options: PipelineOptions) -> JobServer:
            new = start(options)  # which may change the options, and starts nothing yet
            if not isinstance(new, StopOnExitJobServer):
                return new
            if not started:
                started.append(new)
            return started[0]

        runner.default_job_server = server
    return runner


def _flags(run: RunSettings, tasks: int) -> list[str]:
    """The runner's flags. Beam's own worker processes are never used: one that is killed hangs the
    pipeline."""
    if not run.in_process:
        # Ours first: what the user says of the same counts more.
        return [*(_DATAFLOW_FLAGS if is_dataflow(run.runner) else ()), *run.runner_options]
    flags = [flag for flag in run.runner_options if flag != f"{_MODE}={_PROCESSES}"]
    workers = _workers(run, tasks)
    if _flag(run, "--direct_num_workers") is None:
        flags.append(f"--direct_num_workers={workers}")
    if _flag(run, _MODE) in (None, _PROCESSES):
        flags.append(f"{_MODE}={'multi_threading' if workers > 1 else 'in_memory'}")
    return flags


def _workers(run: RunSettings, tasks: int) -> int:
    """Threads of a pipeline in process."""
    given = _flag(run, "--direct_num_workers")
    if given is not None and given.isdecimal() and int(given) > 0:
        return int(given)
    return max(1, min(workers_of(run), tasks))


def _flag(run: RunSettings, name: str) -> str | None:
    """The value of a flag that was given for the runner, the last one."""
    values = [flag.partition("=")[2] for flag in run.runner_options if flag.startswith(f"{name}=")]
    return values[-1] if values else None

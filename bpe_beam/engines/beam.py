"""Beam as an engine: the steps of a job as a pipeline on a Beam runner."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import re
import secrets
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import apache_beam as beam
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
from apache_beam.runners.portability.job_server import JobServer, StopOnExitJobServer
from apache_beam.runners.runner import PipelineState
from apache_beam.typehints.decorators import no_annotations

from bpe_beam import progress
from bpe_beam.engines.runner_errors import JobCancelled, failure_of_runner, was_interrupted
from bpe_beam.engines.runner_flags import DATAFLOW_FLAGS
from bpe_beam.engines.steps import EngineSettings, Steps, TemplateMade, template_of, timed
from bpe_beam.errors import DataError
from bpe_beam.messages import format_seconds
from bpe_beam.transforms.metrics import add_metrics, record
from bpe_beam.transforms.shuffles import CreateElements, SpreadTasks
from bpe_beam.workers.task_results import MetricSums, TaskResult

if TYPE_CHECKING:
    from apache_beam.runners.runner import PipelineRunner

_now = time.monotonic
_WATCH_SECONDS = 2.0
_WATCH_REST = 5
"""The pause after a look, as a multiple of the time that the look took."""
_REST_SECONDS = 10
_IDLE_SECONDS = 10.0
"""How long no task runs before that is shown; between two steps none may run for a moment."""
_NO_ANSWER = (OSError, ValueError, KeyError, TypeError)
_ENDED = re.compile(
    r"(?:failed in state|State:) (CANCELLED|DRAINED|UPDATED)\b|\bJobCancellationException\b"
)
"""The errors of portable runners, Dataflow and Flink for a job that a user has ended."""
_RUNNING = ("INITIALIZING", "CREATED", "RUNNING", "RESTARTING")


@beam.typehints.with_output_types(str)
class StepsTransform(beam.PTransform):
    """The steps of a job as a transform; with the output of the last step."""

    def __init__(self, steps: Steps, min_ram: str) -> None:
        super().__init__()
        # For all steps: steps with different hints are not fused.
        self.with_resource_hints(min_ram=min_ram)
        self.steps = steps

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        return self.steps(_BeamEngine(begin))


class _BeamEngine:
    """Describes each step as a transform of a pipeline; an `Engine`."""

    def __init__(self, begin: beam.pvalue.PBegin) -> None:
        self._begin = begin

    def tasks(self, label: str, tasks: Iterable[str]) -> beam.pvalue.PCollection:
        return self._begin | label >> SpreadTasks(tasks)

    def run(
        self,
        label: str,
        function: Callable[..., TaskResult],
        elements: beam.pvalue.PCollection,
        output_type: Any,
        *whole: beam.pvalue.PCollection,
    ) -> beam.pvalue.PCollection:
        task = beam.ParDo(_RunTask(timed(label, function)), *map(beam.pvalue.AsList, whole))
        return elements | label >> task.with_output_types(output_type)

    def gather(
        self, label: str, pairs: beam.pvalue.PCollection, known: Iterable[tuple[int, Any]] = ()
    ) -> beam.pvalue.PCollection:
        if known := list(known):
            kind = pairs.element_type
            created = self._begin | f"{label}Known" >> CreateElements(known, kind)
            flatten = beam.Flatten().with_output_types(kind)
            pairs = (pairs, created) | f"{label}All" >> flatten
        return pairs | label >> beam.GroupByKey()


class _RunTask(beam.DoFn):
    def __init__(self, function: Callable[..., TaskResult]) -> None:
        self.function = function

    @no_annotations  # Beam would take `whole` for exactly one side input
    def process(self, element: Any, *whole: Any) -> Iterable[Any]:
        result = self.function(*whole, element)
        record(result)
        return result.outputs


def run_pipeline(
    run: EngineSettings,
    label: str,
    transform: beam.PTransform,
    workers: int,
    measured: MetricSums,
    watch: Callable[[], None],
    good_ends: Collection[str] = (),
) -> str | None:
    """Run a transform as a pipeline to its end; return the state in which it ended, if known.

    Another state than DONE and `good_ends` raises an error.
    """
    if not run.debug:
        logging.getLogger("apache_beam").setLevel(logging.ERROR)
        _quiet_threads()
    runner, flags = _runner(run, workers)
    if not run.in_process and run.runner_flag("--job_name") is None:
        flags = [*flags, f"--job_name={new_job_name(label)}"]
    options = PipelineOptions(flags, pipeline_type_check=True)
    pipeline = beam.Pipeline(runner=runner, options=options)
    looks = [watch]
    with _watching(run, lambda: _look(looks)), _interrupts(run.debug):
        pipeline | label >> transform
        result = pipeline.run()
        if template_of(run):
            raise TemplateMade
        if run.in_process:
            state = cast("str | None", result.wait_until_finish())
        else:
            flink = _Flink.of(result, options.view_as(FlinkRunnerOptions).flink_master)
            looks += [flink.look] if flink else []
            with _cancelled_if_left(result, flink):
                state = _state_at_end(result)
    if state == PipelineState.CANCELLED:
        raise JobCancelled
    if state not in (None, PipelineState.DONE, *good_ends):
        raise DataError(f"the runner ended the job in state {state}; see its log")
    add_metrics(measured, result.metrics())
    return state


def _look(looks: Iterable[Callable[[], None]]) -> None:
    for look in looks:
        look()


def new_job_name(label: str) -> str:
    """Return a new name for the job of a pipeline, such as `bpe-beam-tokenize-5f2c81d0`.

    Dataflow takes up to 63 lower-case letters, digits and hyphens; other runners take this too.
    """
    words = re.findall(r"[A-Z]?[a-z0-9]+", label)
    return "-".join(("bpe-beam", *words, secrets.token_hex(4))).lower()


def _state_at_end(result: Any) -> str | None:
    """Wait for a job, and return its state. Some runners raise an error if a user has ended it."""
    try:
        return cast("str | None", result.wait_until_finish())
    except Exception as error:
        ended = _ENDED.search(str(error))
        if ended is not None:
            return ended[1] or str(PipelineState.CANCELLED)
        failure = failure_of_runner(error)
        if failure is None:
            raise
        raise failure from error


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


@contextlib.contextmanager
def _cancelled_if_left(result: Any, flink: _Flink | None) -> Iterator[None]:
    """Cancel a job if the block ends with an error; after an interrupt, end Beam's job server too.

    Beam handles SIGINT alone, and ends its job server then, but not the job. A Flink job then runs
    on, and Beam's own cancellation does not reach it, so the request goes to Flink itself. A second
    signal does not wait for the cancellation.
    """
    main = threading.current_thread() is threading.main_thread()  # which alone gets signals
    beams = signal.getsignal(signal.SIGINT) if main else None
    server = getattr(beams, "__self__", None)
    if not isinstance(server, StopOnExitJobServer):
        server = None
    if main and beams is not None:  # None: not set by Python
        before_beam = getattr(server, "_original_sigint_handler", beams)
        known = callable(before_beam) or isinstance(before_beam, signal.Handlers)
        signal.signal(signal.SIGINT, before_beam if known else signal.default_int_handler)
    try:
        yield
    except BaseException as error:
        # A failure here is not reported: there is an error already.
        with contextlib.suppress(Exception):
            result.cancel()
        if flink is not None:
            with contextlib.suppress(*_NO_ANSWER):
                flink.cancel()
        if isinstance(error, KeyboardInterrupt) and server is not None:
            server.stop()
        raise
    finally:
        if main and beams is not None:
            signal.signal(signal.SIGINT, beams)


class _Flink:
    """A job on a Flink cluster, by the cluster's REST interface."""

    def __init__(self, url: str, name: str) -> None:
        self._url, self._name = url, name
        self._idle_since: float | None = None

    @staticmethod
    def of(result: Any, master: str | None) -> _Flink | None:
        """Return the job; None without an address: `master` is then None or a word in brackets."""
        if not master or master.startswith("["):
            return None
        url = (master if "://" in master else f"http://{master}").rstrip("/")
        # The name is the beginning of Beam's id of the job.
        return _Flink(url, getattr(result, "_job_id", "").rpartition("_")[0])

    def _running(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self._url}/jobs/overview", timeout=_REST_SECONDS) as answer:
            jobs = json.load(answer)["jobs"]
        return [job for job in jobs if job["name"] == self._name and job["state"] in _RUNNING]

    def look(self) -> None:
        """Show in the progress how long no task of the job has run."""
        now = _now()
        try:
            jobs = self._running()
            waits = len(jobs) > 0 and not any(job["tasks"]["running"] for job in jobs)
        except _NO_ANSWER:
            return
        self._idle_since = (self._idle_since or now) if waits else None
        idle = 0.0 if self._idle_since is None else now - self._idle_since
        seconds = f"{idle:.0f} s" if idle < 59.5 else format_seconds(idle)
        shown = f"waiting for workers: no task has run for {seconds}"
        progress.note(shown if idle >= _IDLE_SECONDS else "")

    def cancel(self) -> None:
        """Cancel the job."""
        jobs = self._running()
        # Two jobs may have the same --job_name; then ours is unknown.
        if len(jobs) == 1:
            to = f"{self._url}/jobs/{jobs[0]['jid']}?mode=cancel"
            request = urllib.request.Request(to, method="PATCH")
            urllib.request.urlopen(request, timeout=_REST_SECONDS).close()


def _quiet_threads() -> None:
    """Silence the threads of Beam's workers in this process when they end.

    Flink and Spark close the connections of a job that has ended, and each thread then raises an
    error, which would be shown during the next job. While a job runs, steps that wait for such a
    thread raise its error themselves.
    """
    if threading.excepthook is not _without_hung_up:
        _shown.append(threading.excepthook)
        threading.excepthook = _without_hung_up


_shown: list[Callable[[threading.ExceptHookArgs], object]] = []


def _without_hung_up(args: threading.ExceptHookArgs) -> None:
    of_grpc = args.exc_type.__module__.partition(".")[0] == "grpc"
    cancelled = "StatusCode.CANCELLED" in str(args.exc_value)
    # Spark closes a stream of state with a status of its own.
    of_state = args.thread is not None and args.thread.name == "read_state"
    if not (of_grpc and (cancelled or of_state)):
        _shown[-1](args)


@contextlib.contextmanager
def _watching(run: EngineSettings, watch: Callable[[], None]) -> Iterator[None]:
    """Call `watch` every few seconds, unless the runner is in process."""
    ended = threading.Event()

    def look() -> None:
        pause = _WATCH_SECONDS
        while not ended.wait(pause):
            began = _now()
            with contextlib.suppress(DataError):  # the next call may succeed
                watch()
            # A listing of very many receipts takes seconds.
            pause = max(_WATCH_SECONDS, _WATCH_REST * (_now() - began))

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
    progress.note("")
    with contextlib.suppress(DataError):
        watch()


def _runner(run: EngineSettings, workers: int) -> tuple[PipelineRunner, list[str]]:
    """Return the runner, and its flags."""
    if not run.in_process:
        # Ours first: the last of two flags is used.
        flags = [*(DATAFLOW_FLAGS if run.is_dataflow else ()), *run.runner_options]
        return _cached_runner(str(run.runner), run.runner_options), flags
    # By class, never by the alias DirectRunner, which tries to download another runner first.
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    mode = "multi_threading" if workers > 1 else "in_memory"
    ours = {"--direct_num_workers": str(workers), "--direct_running_mode": mode}
    missing = [f"{name}={value}" for name, value in ours.items() if run.runner_flag(name) is None]
    return FnApiRunner(), [*run.runner_options, *missing]


@functools.lru_cache(maxsize=1)
def _cached_runner(name: str, flags: tuple[str, ...]) -> PipelineRunner:
    """Return the runner of all pipelines that a job launches with these flags.

    Beam would start a job server for each: a Java process of 400 MB that lives as long as this one.
    """
    from apache_beam.runners.portability.portable_runner import PortableRunner
    from apache_beam.runners.runner import create_runner

    runner = create_runner(name)
    if isinstance(runner, PortableRunner):
        start = runner.default_job_server
        started: list[JobServer] = []

        def server(options: PipelineOptions) -> JobServer:
            new = start(options)  # may change the options, but starts no process yet
            if not isinstance(new, StopOnExitJobServer):
                return new
            if not started:
                started.append(new)
            return started[0]

        runner.default_job_server = server
    return runner

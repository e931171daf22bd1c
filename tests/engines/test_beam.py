"""Beam as an engine: its flags, and what a driver sees of workers elsewhere."""

from __future__ import annotations

import json
import re
import threading
import types
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import apache_beam as beam
import grpc
import pytest

from bpe_beam import progress
from bpe_beam.engines import beam as running
from bpe_beam.engines.runner_errors import JobCancelled, our_error
from bpe_beam.errors import DataError
from bpe_beam.settings.common import RunSettings
from bpe_beam.workers.task_results import MetricSums

pytestmark = pytest.mark.quick

_METRICS = ("counters", "distributions", "gauges")


def test_a_runner_elsewhere_is_looked_at_once_more_at_the_end() -> None:
    seen = []
    with running._watching(RunSettings(runner="FlinkRunner"), lambda: seen.append(1)):
        assert not seen
    assert len(seen) == 1
    with running._watching(RunSettings(), lambda: seen.append(2)):
        pass
    assert seen == [1]


def test_a_look_that_fails_fails_nothing() -> None:
    def look() -> None:
        raise DataError("no connection")

    with running._watching(RunSettings(runner="FlinkRunner"), look):
        pass


def flags(*flag_text: str, workers: int = 9) -> list[str]:
    run = RunSettings(runner="FnApiRunner", runner_options=flag_text)
    return running._runner(run, workers)[1]


def test_threads_of_a_runner_in_process() -> None:
    mode, count = "--direct_running_mode=", "--direct_num_workers="
    assert flags(workers=3) == [f"{count}3", f"{mode}multi_threading"]
    assert flags(workers=1) == [f"{count}1", f"{mode}in_memory"]
    assert flags(f"{mode}in_memory", workers=2) == [f"{mode}in_memory", f"{count}2"]
    assert flags(f"{count}4", workers=4) == [f"{count}4", f"{mode}multi_threading"]


def test_names_of_jobs_are_new_and_valid_on_dataflow() -> None:
    names = {running.new_job_name(label) for label in ("StreamTokenize", "Tokenize", "Tokenize")}
    assert len(names) == 3
    for name in names:
        assert re.fullmatch(r"bpe-beam-(stream-)?tokenize-[0-9a-f]{8}", name)


class _Ended:
    """The result of a pipeline that ended in a state, or with an error."""

    def __init__(self, end: str | Exception) -> None:
        self.end = end

    def wait_until_finish(self) -> str:
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


def test_a_job_that_was_cancelled_on_its_runner() -> None:
    for text in (
        "Pipeline a_1 failed in state CANCELLED: bye",
        "Dataflow pipeline failed. State: CANCELLED, Error: ",
        "Pipeline a_1 failed in state FAILED: org.apache.flink.runtime.client."
        "JobCancellationException: Job was cancelled.",
    ):
        assert running._state_at_end(_Ended(RuntimeError(text))) == "CANCELLED"
    assert running._state_at_end(_Ended("DONE")) == "DONE"
    for state in ("DRAINED", "UPDATED"):
        error = RuntimeError(f"Dataflow pipeline failed. State: {state}, Error:\n")
        assert running._state_at_end(_Ended(error)) == state
    with pytest.raises(DataError, match="the runner ended the job: no; when"):
        running._state_at_end(_Ended(RuntimeError("Pipeline a_1 failed in state FAILED: no")))
    with pytest.raises(RuntimeError, match="other"):
        running._state_at_end(_Ended(RuntimeError("other")))
    wrapped = RuntimeError("x")
    wrapped.__cause__ = JobCancelled()
    assert isinstance(our_error(wrapped), JobCancelled)


def test_threads_whose_connection_was_closed_say_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other errors, and other threads, are shown."""
    shown: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: shown.append(str(args.exc_value)))
    monkeypatch.setattr(running, "_shown", [])
    running._quiet_threads()

    def fails(error: Exception, name: str) -> None:
        def run() -> None:
            raise error

        thread = threading.Thread(target=run, name=name)
        thread.start()
        thread.join()

    fails(grpc.RpcError("StatusCode.CANCELLED"), "any")
    fails(grpc.RpcError("StatusCode.UNKNOWN 1"), "read_state")
    fails(grpc.RpcError("StatusCode.UNKNOWN 2"), "any")
    fails(RuntimeError("StatusCode.CANCELLED 3"), "read_state")
    assert shown == ["StatusCode.UNKNOWN 2", "StatusCode.CANCELLED 3"]


class _Elsewhere(beam.runners.PipelineRunner):
    """A runner elsewhere, whose job a user drains."""

    cancelled = False

    def run_pipeline(self, pipeline: Any, options: Any) -> Any:
        return self

    def wait_until_finish(self) -> str:
        raise RuntimeError("Dataflow pipeline failed. State: DRAINED, Error:\nNone")

    def cancel(self) -> None:
        self.cancelled = True

    def metrics(self) -> Any:
        return types.SimpleNamespace(query=lambda *_: dict.fromkeys(_METRICS, ()))


def test_a_stream_that_was_drained_has_ended_well(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = _Elsewhere()
    monkeypatch.setattr(running, "_runner", lambda *_: (runner, []))

    def run(*good_ends: str) -> str | None:
        settings = RunSettings(runner="DataflowRunner")
        step = beam.Impulse()
        return running.run_pipeline(
            settings, "Stream", step, 1, MetricSums(), lambda: None, good_ends
        )

    assert run("DRAINED", "UPDATED") == "DRAINED"
    with pytest.raises(DataError, match="the runner ended the job in state DRAINED"):
        run()
    assert not runner.cancelled


@pytest.fixture
def flink() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the address of a REST interface, and the jobs that it reports."""
    jobs: list[dict[str, Any]] = []

    class Rest(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"jobs": jobs}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Rest)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}", jobs
    server.shutdown()
    thread.join()
    server.server_close()


def test_progress_says_that_no_task_runs_on_flink(
    flink: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, jobs = flink
    clock = [0.0]
    monkeypatch.setattr(running, "_now", lambda: clock[0])
    result = _Ended("DONE")
    result._job_id = "bpe-beam-count-1_uuid"  # type: ignore[attr-defined]
    job = running._Flink.of(result, address)
    assert job is not None
    assert running._Flink.of(result, "[auto]") is None

    def note(seconds: float, tasks: int | None, name: str = "bpe-beam-count-1") -> str:
        clock[0] = seconds
        told = {"name": name, "state": "RUNNING", "tasks": {"running": tasks}}
        jobs[:] = [] if tasks is None else [told]
        job.look()
        with progress.Progress("none").stage("s", 10, "bytes") as stage:
            return stage.snapshot().note

    try:
        assert note(0, None) == ""
        assert note(5, 0) == ""
        assert note(45, 0) == "waiting for workers: no task has run for 40 s"
        assert note(50, 3) == ""
        assert note(60, 0) == ""
        assert note(99, 0, "another") == ""
        assert note(100, 0) == ""
        assert note(225, 0) == "waiting for workers: no task has run for 2 min 5 s"
    finally:
        progress.note("")

"""Progress: lines not too often, exact sums from threads, and never in the way of the work."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from bpe_beam import progress
from bpe_beam.progress import JsonLines, Progress, Snapshot, report

pytestmark = pytest.mark.quick


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at(seconds: float, done: int = 0, total: int | None = None, **counters: int) -> Snapshot:
    return Snapshot("count", done, total, "splits", counters, seconds)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_says_all_there_is() -> None:
    stream = io.StringIO()
    JsonLines(stream).show(at(5.0, 2, 8, documents=30, bytes=1000, other=7))
    assert lines(stream) == [
        {
            "stage": "count",
            "done": 2,
            "total": 8,
            "unit": "splits",
            "documents": 30,
            "bytes": 1000,
            "seconds": 5.0,
            "bytes_per_second": 200,
            "eta_seconds": 15.0,
            "other": 7,
        }
    ]
    assert list(lines(stream)[0]) == [
        "stage", "done", "total", "unit", "documents", "bytes", "seconds", "bytes_per_second",
        "eta_seconds", "other",
    ]  # fmt: skip


def test_a_counter_takes_no_place_of_a_key_that_there_is() -> None:
    stream = io.StringIO()
    JsonLines(stream).show(Snapshot("s", 2, 8, "u", {"seconds": 7, "total": 9}, 5.0))
    (line,) = lines(stream)
    assert (line["seconds"], line["total"]) == (5.0, 8)


def test_at_most_a_line_each_five_seconds_and_one_at_the_end() -> None:
    stream = io.StringIO()
    display = JsonLines(stream)
    for tenths in range(201):
        if not 120 <= tenths < 190:  # held up for seven seconds: nothing is made up for
            display.show(at(tenths / 10))
    assert [line["seconds"] for line in lines(stream)] == [5.0, 10.0, 19.0]
    display.close(at(20.5, 3, 8), finished=True)
    assert [line["seconds"] for line in lines(stream)] == [5.0, 10.0, 19.0, 20.5]
    assert lines(stream)[-1]["eta_seconds"] == 0.0
    display.close(at(21.0), finished=False)
    assert len(lines(stream)) == 4


def test_what_cannot_be_known_is_null() -> None:
    stream = io.StringIO()
    JsonLines(stream).show(at(5.0, 3))
    JsonLines(stream).show(at(5.0, 0, 3))
    JsonLines(stream).show(at(5.0, 4, 3))
    JsonLines(stream).show(Snapshot("read", 50, 100, "bytes", {}, 5.0))
    unknown, unbegun, over, in_bytes = lines(stream)
    assert (unknown["total"], unknown["eta_seconds"], unknown["bytes"]) == (None, None, None)
    assert (unknown["documents"], unknown["bytes_per_second"]) == (None, None)
    assert unbegun["eta_seconds"] is None
    assert over["eta_seconds"] == 0.0
    assert (in_bytes["bytes"], in_bytes["bytes_per_second"]) == (50, 10)


def test_lines_come_while_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_POLL_SECONDS", 0.005)
    now = [0.0]
    stream = io.StringIO()
    with Progress(stream=stream, clock=lambda: now[0]).stage("count", 10, "splits") as stage:
        stage.advance(4, documents=2, bytes=80)
        now[0] = 4.9
        time.sleep(0.05)
        assert lines(stream) == []
        now[0] = 8.0
        deadline = time.monotonic() + 120
        while not lines(stream) and time.monotonic() < deadline:
            time.sleep(0.005)
        (line,) = lines(stream)
        assert (line["done"], line["bytes_per_second"], line["eta_seconds"]) == (4, 10, 12.0)
        stage.advance(6)
    assert [line["done"] for line in lines(stream)] == [4, 10]


def test_threads_report_without_losing_anything() -> None:
    stream = io.StringIO()

    def work() -> None:
        for _ in range(2000):
            report("count", done=1, documents=3, bytes=10)

    with Progress(stream=stream).stage("count", 8000, "splits") as stage:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stage.advance(1)
    (line,) = lines(stream)
    assert (line["done"], line["documents"], line["bytes"]) == (8001, 24000, 80000)


def test_a_stage_begins_at_zero_whatever_was_reported_before() -> None:
    stream = io.StringIO()
    report("count", done=7)
    with Progress(stream=stream).stage("count", 1, "splits"):
        report("other", done=5)
    with Progress(stream=stream).stage("count", 1, "splits") as stage:
        stage.advance(1)
    assert [line["done"] for line in lines(stream)] == [0, 1]


def test_what_was_seen_and_what_was_put() -> None:
    """What is seen is no less than what was reported; what is put is so, and is gone on from."""
    stage = Progress("none").stage("learn", None, "rounds")
    with stage:
        stage.advance(1, pieces=2)
        stage.seen(0, pieces=5)
        assert stage.snapshot().done == 1
        assert stage.snapshot().counters == {"pieces": 5}
        stage.seen(3, pieces=4)
        report("learn", pieces=4)
        assert stage.snapshot().done == 3
        assert stage.snapshot().counters == {"pieces": 6}
        stage.put(pieces=0, pieces_in_round=8)
        assert stage.snapshot().counters == {"pieces": 0, "pieces_in_round": 8}
        stage.advance(0, pieces=1)
        assert stage.snapshot().counters["pieces"] == 1


def test_a_report_costs_microseconds() -> None:
    start = time.thread_time()
    for _ in range(10_000):
        report("nobody listens", done=1, documents=1, bytes=1)
    assert time.thread_time() - start < 1.0  # a hundred times what it takes


def threads() -> set[threading.Thread]:
    """Those of stages; others come and go beside the tests."""
    return {thread for thread in threading.enumerate() if thread.name == "progress"}


def test_quiet_shows_nothing_and_starts_no_thread() -> None:
    stream = Terminal()
    before = threads()
    with Progress("none", stream=stream).stage("count", 1, "splits") as stage:
        assert threads() == before
        stage.advance(1)
        assert stage.snapshot().done == 1
    assert stream.getvalue() == ""


def test_no_thread_stays_behind() -> None:
    before = threads()
    with Progress(stream=io.StringIO()).stage("count", 1, "splits"):
        assert len(threads() - before) == 1
    assert threads() == before


def test_a_failed_stage_ends_without_a_last_line() -> None:
    stream = io.StringIO()
    with pytest.raises(KeyError), Progress(stream=stream).stage("count", 1, "splits"):
        raise KeyError
    assert stream.getvalue() == ""


def test_a_bar_on_a_terminal() -> None:
    stream = Terminal()
    with Progress(stream=stream).stage("count", 1000, "splits") as stage:
        stage.advance(400, documents=12345, bytes=50_000_000)
    text = stream.getvalue()
    assert "count:  40%" in text
    assert "400/1000" in text
    assert "50.0 MB" in text
    assert "MB/s" in text
    assert "12,345 documents" in text
    assert text.endswith("\n")
    assert "{" not in text


def test_a_bar_in_bytes_and_a_bar_without_total() -> None:
    stream = Terminal()
    with Progress(stream=stream).stage("read", 10**9, "bytes") as stage:
        stage.advance(2 * 10**9)
    assert "1.00G/1.00G" in stream.getvalue()
    with Progress(stream=stream).stage("learn", None, "merges") as stage:
        stage.advance(31743, of_last_step=3)
    assert "31743 merges" in stream.getvalue()
    assert ", 3 of last step" in stream.getvalue()
    with Progress(stream=stream).stage("verify", None, "bytes") as stage:
        stage.total = 4000
        stage.advance(2000)
    assert "verify:  50%" in stream.getvalue()


def test_a_real_terminal_gets_a_bar_and_a_pipe_gets_json() -> None:
    code = (
        "from bpe_beam.progress import Progress\n"
        "with Progress().stage('count', 2, 'splits') as s: s.advance(2)\n"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs) as child:
        os.close(theirs)
        try:
            shown = read_all(ours)
        finally:
            child.kill()
    os.close(ours)
    assert b"count: 100%" in shown
    assert b'"stage"' not in shown


def read_all(terminal: int) -> bytes:
    """What is shown on a terminal until nobody has it open any more."""
    shown = b""
    end = time.monotonic() + 120
    while select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
        try:
            block = os.read(terminal, 4096)
        except OSError:  # how Linux says that it is closed
            block = b""
        if not block:
            return shown
        shown += block
    raise AssertionError(f"not closed after two minutes: {shown!r}")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_closed_stderr_does_not_end_a_job(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_POLL_SECONDS", 0.005)
    stream = Terminal() if terminal else io.StringIO()
    now = [0.0]
    with Progress(stream=stream, clock=lambda: now[0]).stage("count", 2, "splits") as stage:
        stream.close()
        now[0] = 100.0
        time.sleep(0.05)
        stage.advance(2)
    with Progress(stream=_Gone()).stage("count", 2, "splits") as stage:
        stage.advance(2)
        assert stage.snapshot().done == 2


class _Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError

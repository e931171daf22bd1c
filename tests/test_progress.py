"""Progress: lines not too often, exact sums from threads, and never in the way of the work."""

from __future__ import annotations

import io
import itertools
import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from waiting import wait_until

from bpe_beam import progress
from bpe_beam.progress import (
    Progress,
    Snapshot,
    _bar_line,
    _display,
    _TerminalBar,
    _TimeLeft,
    report,
)

pytestmark = pytest.mark.quick


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at(seconds: float, done: int = 0, total: int | None = None, **counters: int) -> Snapshot:
    return with_time_left(Snapshot("count", done, total, "splits", counters, seconds))


def with_time_left(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of a stage that has done everything at one rate."""
    if snapshot.total is None:
        return snapshot
    left = _TimeLeft().seconds(snapshot.seconds, 0.0, snapshot.done, snapshot.total)
    return snapshot._replace(eta_seconds=left)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_says_all_there_is() -> None:
    stream = io.StringIO()
    _display("json", stream).show(at(5.0, 2, 8, documents=30, bytes=1000, other=7))
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
    _display("json", stream).show(Snapshot("s", 2, 8, "u", {"seconds": 7, "total": 9}, 5.0))
    (line,) = lines(stream)
    assert (line["seconds"], line["total"]) == (5.0, 8)


def test_at_most_a_line_each_five_seconds_and_one_at_the_end() -> None:
    stream = io.StringIO()
    display = _display("json", stream)
    for tenths in range(201):
        if not 120 <= tenths < 190:  # held up for seven seconds: nothing is made up for
            display.show(at(tenths / 10))
    assert [line["seconds"] for line in lines(stream)] == [5.0, 10.0, 19.0]
    display.close(at(20.5, 3, 8), finished=True)
    assert [line["seconds"] for line in lines(stream)] == [5.0, 10.0, 19.0, 20.5]
    assert lines(stream)[-1]["eta_seconds"] == 0.0
    display.close(at(21.0), finished=False)
    assert len(lines(stream)) == 4


def test_a_json_line_has_no_key_for_what_cannot_be_known() -> None:
    stream = io.StringIO()
    _display("json", stream).show(at(5.0, 3))
    _display("json", stream).show(at(5.0, 0, 3))
    _display("json", stream).show(at(5.0, 4, 3))
    _display("json", stream).show(Snapshot("read", 50, 100, "bytes", {}, 5.0))
    unknown, unbegun, over, in_bytes = lines(stream)
    assert unknown == {"stage": "count", "done": 3, "unit": "splits", "seconds": 5.0}
    assert unbegun == {**unknown, "done": 0, "total": 3}
    assert over["eta_seconds"] == 0.0
    assert (in_bytes["bytes"], in_bytes["bytes_per_second"]) == (50, 10)
    assert "null" not in stream.getvalue()


def test_plain_lines_are_for_people() -> None:
    stream = io.StringIO()
    display = _display("plain", stream)

    def reading(seconds: float, done: int) -> Snapshot:
        counters = {"documents": 12_345, "bytes": 3 * done}
        return with_time_left(Snapshot("count", done, 2_700_000_000, "bytes", counters, seconds))

    display.show(reading(4.9, 1))
    display.show(reading(5.0, 900_000_000))
    display.show(reading(9.9, 1_000_000_000))
    display.close(reading(15.2, 2_700_000_000), finished=True)
    assert stream.getvalue().splitlines() == [
        "count: 33 %, 900 MB of 2.7 GB, 10 s left, 540 MB/s of text, 12,345 documents",
        "count: done, 2.7 GB, 15.2 s, 533 MB/s of text, 12,345 documents",
    ]
    display.close(reading(20.0, 5), finished=False)
    assert len(stream.getvalue().splitlines()) == 2
    unknown = io.StringIO()
    _display("plain", unknown).show(at(5.0, 1234, rounds_left=2))
    assert unknown.getvalue() == "count: 1,234 splits, 2 rounds left\n"
    waiting = io.StringIO()
    shown = at(5.0, 0)._replace(note="waiting for workers")
    _display("plain", waiting).show(shown)
    _display("json", waiting).show(shown)
    assert waiting.getvalue().startswith("count: waiting for workers, 0 splits\n{")
    assert '"note": "waiting for workers"' in waiting.getvalue()


def test_plain_lines_come_less_often_the_longer_a_stage_takes() -> None:
    stream = io.StringIO()
    display = _display("plain", stream)
    shown = []
    for second in range(2 * 3600):
        before = len(stream.getvalue())
        display.show(at(second, second, 7200))
        if len(stream.getvalue()) > before:
            shown.append(second)
    assert shown[:4] == [5, 10, 15, 20]
    gaps = [later - earlier for earlier, later in itertools.pairwise(shown)]
    assert gaps == sorted(gaps)
    assert gaps[-1] == 60
    assert len(shown) < 200


@pytest.mark.parametrize("columns", [1, 8, 20, 40, 59, 79, 99, 199])
def test_a_bar_fits_its_terminal(columns: int) -> None:
    counters = {"documents": 12_345_678, "bytes": 4_000_000_000, "tokens": 987_654_321}
    for finished in (False, True):
        snapshot = with_time_left(
            Snapshot("tokenize", 1_200_000_000, 2_700_000_000, "bytes", counters, 30.0)
        )
        line = _bar_line(snapshot, columns, finished)
        assert len(line) <= columns
        assert line.startswith("tokenize  44%"[:columns])
        assert ("[" in line) == (columns >= 26)
        if "[" in line:
            bar = line[line.index("[") + 1 : line.index("]")]
            assert 10 <= len(bar) <= 40
            assert bar.count("#") == len(bar) * 44 // 100


def test_a_bar_says_what_there_is_room_for() -> None:
    counters = {"documents": 12_345_678, "bytes": 4_000_000_000}
    snapshot = with_time_left(
        Snapshot("tokenize", 1_200_000_000, 2_700_000_000, "bytes", counters, 30.0)
    )
    assert [_bar_line(snapshot, columns) for columns in (20, 40, 60, 100)] == [
        "tokenize  44%",
        "tokenize  44% [##########--------------]",
        "tokenize  44% [#######---------] 1.2 GB of 2.7 GB, 38 s left",
        "tokenize  44% [#######---------] 1.2 GB of 2.7 GB, 38 s left, 133 MB/s of text, "
        "12,345,678 documents",
    ]


def test_all_is_only_said_of_what_is_done() -> None:
    assert at(1.0, 9_999, 10_000).percent == 99
    assert at(1.0, 10_001, 10_000).percent == 100
    assert at(1.0, 0, 0).percent == 100
    assert at(1.0, 5).percent is None


@pytest.mark.parametrize(
    ("mode", "terminal", "shown"),
    [
        ("auto", True, "bar"),
        ("auto", False, "plain"),
        ("bar", False, "bar"),
        ("plain", True, "plain"),
        ("json", True, "json"),
        ("none", True, "none"),
    ],
)
def test_modes(mode: str, terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal() if terminal else io.StringIO()
    progress = Progress(mode, stream=stream)
    assert progress.mode == shown
    with progress.stage("count", 2, "splits") as stage:
        stage.advance(2)
    begins = {"bar": "\rcount 100% [", "plain": "count: done, 2 splits", "json": "{", "none": ""}
    assert stream.getvalue().startswith(begins[shown])
    assert bool(stream.getvalue()) == (shown != "none")


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert Progress(stream=Terminal()).mode == "plain"


def test_lines_come_while_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_POLL_SECONDS", 0.005)
    now = [0.0]
    monkeypatch.setattr(progress, "_now", lambda: now[0])
    stream = io.StringIO()
    with Progress("json", stream=stream).stage("count", 10, "splits") as stage:
        stage.advance(4, documents=2, bytes=80)
        now[0] = 4.9
        time.sleep(0.05)
        assert lines(stream) == []
        now[0] = 8.0
        wait_until(lambda: lines(stream), "a line", pause=0.005)
        (line,) = lines(stream)
        assert (line["done"], line["bytes_per_second"]) == (4, 10)
        stage.advance(6)
    assert [line["done"] for line in lines(stream)] == [4, 10]


def test_threads_report_without_losing_anything() -> None:
    stream = io.StringIO()

    def work() -> None:
        for _ in range(2000):
            report("count", done=1, documents=3, bytes=10)

    with Progress("json", stream=stream).stage("count", 8000, "splits") as stage:
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
    with Progress("json", stream=stream).stage("count", 1, "splits"):
        report("other", done=5)
    with Progress("json", stream=stream).stage("count", 1, "splits") as stage:
        stage.advance(1)
    assert [line["done"] for line in lines(stream)] == [0, 1]


def test_what_was_seen_and_what_was_put() -> None:
    """What is seen is no less than what was reported; what is put is so, and is gone on from."""
    stage = Progress("none").stage("learn", None, "rounds")
    with stage:
        stage.advance(1, tasks=2)
        stage.at_least(0, tasks=5)
        assert stage.snapshot().done == 1
        assert stage.snapshot().counters == {"tasks": 5}
        stage.at_least(3, tasks=4)
        report("learn", tasks=4)
        assert stage.snapshot().done == 3
        assert stage.snapshot().counters == {"tasks": 6}
        stage.put(tasks=0, tasks_in_round=8)
        assert stage.snapshot().counters == {"tasks": 0, "tasks_in_round": 8}
        stage.advance(0, tasks=1)
        assert stage.snapshot().counters["tasks"] == 1


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
    with Progress("bar", stream=stream).stage("count", 1000, "splits") as stage:
        stage.advance(400, documents=12345, bytes=50_000_000)
    text = stream.getvalue()
    assert text.startswith("\r")
    assert "count  40% [" in text
    assert "400 of 1,000 splits" in text
    assert text.endswith("\n")
    assert "{" not in text


def test_a_bar_is_written_over() -> None:
    stream = Terminal()
    display = _TerminalBar(stream)
    display.show(at(1.0, 10, 1000))
    display.show(at(1.0, 10, 1000))
    display.show(at(2.0, 1000))
    first, second = stream.getvalue().split("\r")[1:]
    assert second.rstrip() == "count 1,000 splits"
    assert len(second) == len(first)  # nothing of the longer line stays


def test_a_bar_in_bytes_and_a_bar_without_total() -> None:
    stream = Terminal()
    with Progress("bar", stream=stream).stage("read", 10**9, "bytes") as stage:
        stage.advance(2 * 10**9)
    assert "1 GB" in stream.getvalue()
    assert not re.search(r"\b2 GB(?!/s)", stream.getvalue())  # a speed may end in "2 GB/s"
    with Progress("bar", stream=stream).stage("learn", None, "merges") as stage:
        stage.advance(31743, of_last_step=3)
    assert "learn 31,743 merges" in stream.getvalue()
    assert ", 3 of last step" in stream.getvalue()
    with Progress("bar", stream=stream).stage("verify", None, "bytes") as stage:
        stage.total = 4000
        stage.advance(2000)
    assert "verify  50%" in stream.getvalue()


def test_a_real_terminal_gets_a_bar() -> None:
    code = (
        "from bpe_beam.progress import Progress\n"
        "with Progress().stage('count', 2, 'splits') as s: s.advance(2)\n"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code], stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ) as child:
        os.close(theirs)
        try:
            shown = read_all(ours)
        finally:
            child.kill()
    os.close(ours)
    assert b"\rcount 100% [" in shown
    assert b"count: done" not in shown


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
    monkeypatch.setattr(progress, "_now", lambda: now[0])
    with Progress(stream=stream).stage("count", 2, "splits") as stage:
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


def test_what_an_earlier_run_did_is_not_mixed_with_this_run() -> None:
    """Documents and tokens are counted in this run alone, and so is the amount before them."""
    stream = io.StringIO()
    with Progress("plain", stream=stream).stage("read", 10_000_000, "bytes") as stage:
        stage.done_before(8_000_000)
        stage.advance(2_000_000, documents=5)
    assert stream.getvalue().startswith("read: done, 2 MB and 8 MB kept from before, ")
    assert ", 5 documents" in stream.getvalue()


def test_one_of_a_unit() -> None:
    for unit, shown in (("passes", "1 pass,"), ("merges", "1 merge,"), ("tokens read", "1 tokens")):
        stream = io.StringIO()
        with Progress("plain", stream=stream).stage("learn", None, unit) as stage:
            stage.advance(1)
        assert shown in stream.getvalue()


def times_left(
    monkeypatch: pytest.MonkeyPatch,
    moments: list[tuple[float, int]],
    *,
    before: int = 0,
    share_of_time: progress.ShareOfTime | None = None,
) -> list[float | None]:
    """Return the seconds left at moments of a stage of 100 merges: its seconds and merges."""
    now = [0.0]
    monkeypatch.setattr(progress, "_now", lambda: now[0])
    left = []
    with Progress("none").stage("learn", 100 + before, "merges") as stage:
        stage.share_of_time = share_of_time
        stage.done_before(before)
        for seconds, done in moments:
            now[0] = seconds
            stage.at_least(before + done)
            left.append(stage.snapshot().eta_seconds)
    return left


@pytest.mark.parametrize("before", [0, 5000])
def test_the_rate_of_the_last_quarter_tells_the_time_left(
    before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first half is four times slower; after a third more, its rate has no effect."""
    moments = [(0.0, 0), *((4.0 * done, done) for done in range(10, 51, 10))]
    moments += [(200.0 + done, 50 + done) for done in (10, 20, 30, 50)]
    assert times_left(monkeypatch, moments, before=before) == [
        None, 360.0, 320.0, 280.0, 240.0, 200.0, pytest.approx(100, abs=0.1), 30.0, 20.0, 0.0,
    ]  # fmt: skip


def test_the_time_left_falls_until_a_step_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [(0.0, 0), (10.0, 50), (15.0, 50), (18.0, 50), (20.0, 50), (40.0, 75)]
    assert times_left(monkeypatch, moments) == [None, 10.0, 5.0, 2.0, 20.0, 30.0]


def test_a_table_of_shares_tells_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the time is over when a tenth is done."""

    def share_of_time(now: Snapshot) -> float:
        return 5 * now.done / 100 if now.done < 10 else 0.5 + 0.5 * (now.done - 10) / 90

    moments = [(0.0, 0), (1.0, 2), (5.0, 10), (7.5, 55), (10.0, 100)]
    left = times_left(monkeypatch, moments, share_of_time=share_of_time)
    assert left == [None, 9.0, 5.0, 2.5, 0.0]


def test_a_stage_has_few_moments_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_MAXIMUM_MOMENTS", 8)
    time_left = _TimeLeft()
    for second in range(1, 1000):
        assert time_left.seconds(second, 0.0, second, 1000.0) == 1000 - second
        assert len(time_left._moments) <= 8

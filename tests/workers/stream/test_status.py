"""The reports of watchers: the lag, and which of several watchers looks."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from stream_by_hand import STORAGE, expected, put, run_stream, texts, work_off

from bpe_beam.folders.artifact_names import WATCHERS
from bpe_beam.workers.stream.status import SILENT_SECONDS, ReportingWatcher, read_reports
from bpe_beam.workers.stream.watcher import Stream

SILENT = SILENT_SECONDS + 4


@pytest.fixture(autouse=True)
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is ready at the first look."""
    monkeypatch.setattr("bpe_beam.corpus.new_files.Watched.appears_whole", True)


def clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(time, "time", lambda: 1e9 + seconds)


def test_the_lag_is_reported_at_each_look(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = replace(stream, window_seconds=30, job="one", until_idle_seconds=None)
    watcher = ReportingWatcher(stream)
    put(stream, "a.jsonl", 0)
    clock(monkeypatch, 0)
    watcher.look(0.0)
    clock(monkeypatch, 20)
    put(stream, "b.jsonl", 1)
    watcher.look(20.0)
    (report,) = read_reports(STORAGE, stream.output)
    assert (report.job, report.looks, report.at) == ("one", 2, 1e9 + 20)
    lag = report.lag
    assert (lag.files_waiting, lag.windows_open, lag.windows_finished) == (2, 0, 0)
    assert lag.oldest_since == 1e9
    clock(monkeypatch, 40)
    tasks = watcher.look(40.0)
    lag = read_reports(STORAGE, stream.output)[0].lag
    assert (lag.files_waiting, lag.windows_open, lag.oldest_since) == (2, 1, 1e9)
    # Another watcher knows that the files of the window arrived before the last look.
    clock(monkeypatch, 500)
    put(stream, "c.jsonl", 2)
    later = ReportingWatcher(replace(stream, job="two"))
    later.look(0.0)
    first, second = read_reports(STORAGE, stream.output)
    assert (first.job, second.job) == ("two", "one")
    assert (first.lag.files_waiting, first.lag.oldest_since) == (3, 1e9 + 40)
    work_off(stream, tasks)
    work_off(stream, later.look(40.0))
    later.look(41.0)
    lag = read_reports(STORAGE, stream.output)[0].lag
    assert (lag.files_waiting, lag.oldest_since, lag.windows_finished) == (0, None, 2)


def test_a_later_watcher_takes_over_until_it_is_silent(stream: Stream) -> None:
    stream = replace(stream, until_idle_seconds=None)
    old, new = (ReportingWatcher(replace(stream, job=job)) for job in ("old", "new"))
    put(stream, "a.jsonl", 0)
    first = old.look(0.0)
    assert first
    assert len(new.look(0.0)) == len(first), "the new one hands the open window out again"
    put(stream, "b.jsonl", 1)
    assert old.look(1.0) == []
    second = new.look(1.0)
    assert second
    work_off(stream, first + second)
    assert [report.stands_by for report in read_reports(STORAGE, stream.output)] == [False, True]
    # The new one is killed: the old one notices, and goes on.
    put(stream, "c.jsonl", 2)
    assert old.look(2.0) == []
    assert old.look(SILENT) == []
    third = old.look(SILENT + 2)
    assert third
    work_off(stream, third)
    old.look(SILENT + 3)
    assert [report.stands_by for report in read_reports(STORAGE, stream.output)] == [False]
    assert sorted(texts(stream)) == expected(0, 1, 2)
    # It lives after all, and takes over again.
    put(stream, "d.jsonl", 3)
    assert new.look(SILENT + 4)
    assert old.look(SILENT + 4) == []


def test_of_two_processes_of_a_job_the_one_that_is_called_looks(stream: Stream) -> None:
    """A runner may move the watcher to another process and back."""
    stream = replace(stream, until_idle_seconds=None)
    one = replace(stream, job="one")
    first = ReportingWatcher(one)
    first.look(0.0)
    later = ReportingWatcher(replace(stream, job="later"))
    second = ReportingWatcher(one)
    for now, name in enumerate(("a", "b", "c")):
        put(stream, f"{name}.jsonl", now)
        watcher = first if name == "b" else second
        work_off(stream, watcher.look(float(now)))
    second.look(3.0)
    assert sorted(texts(stream)) == expected(0, 1, 2)
    # A job that was started later still takes over.
    later.look(3.0)
    put(stream, "d.jsonl", 3)
    for watcher in (first, second, ReportingWatcher(one)):
        assert watcher.look(4.0) == []
    assert later.look(4.0)
    (report, *ours) = read_reports(STORAGE, stream.output)
    assert report.job == "later"
    assert [(each.job, each.number, each.stands_by) for each in ours] == [("one", 1, True)] * 3
    # The process that is not called any more leaves no report.
    for now in (5.0, SILENT, SILENT + 5):
        later.look(now)
    assert [each.job for each in read_reports(STORAGE, stream.output)] == ["later"]


def test_a_stream_that_has_ended_leaves_no_report(stream: Stream) -> None:
    run_stream(replace(stream, job="one"))
    assert not Path(stream.output, WATCHERS).exists()
    # A runner has moved the watcher to another process.
    ReportingWatcher(replace(stream, job="two", until_idle_seconds=None)).look(0.0)
    run_stream(replace(stream, job="two"))
    assert not Path(stream.output, WATCHERS).exists()
    put(stream, "a.jsonl", 0)
    watcher = ReportingWatcher(replace(stream, creates_only=False))
    assert watcher.look(0.0), "it waits for no other"


def test_without_conditional_writes_a_later_watcher_waits(stream: Stream) -> None:
    stream = replace(stream, creates_only=False, until_idle_seconds=None)
    jobs = ("old", "killed", "new")
    old, killed, new = (ReportingWatcher(replace(stream, job=job)) for job in jobs)
    put(stream, "a.jsonl", 0)
    assert killed.look(0.0)
    assert old.look(0.0) == []
    assert new.look(0.0) == []
    assert old.look(1.0) == []
    assert new.look(2.0) == [], "the killed one may still look"
    assert old.look(SILENT + 2) == []
    assert new.look(SILENT + 2)


def test_a_damaged_report_is_none(stream: Stream) -> None:
    watcher = ReportingWatcher(replace(stream, until_idle_seconds=None))
    watcher.look(0.0)
    (path,) = Path(stream.output, WATCHERS).iterdir()
    path.write_bytes(path.read_bytes()[:40])
    assert read_reports(STORAGE, stream.output) == []
    watcher.look(1.0)
    assert len(read_reports(STORAGE, stream.output)) == 1

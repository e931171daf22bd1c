"""The progress of a job, on stderr: a bar on a terminal, lines elsewhere, as text or as JSON.

The driver enters a `Stage`. Tasks that run as threads of this process call `report`, which adds to
a dictionary; a worker process forwards its reports (`forward_to`). If workers are on other
machines, the driver counts the tasks that they have finished (`Stage.at_least`). A thread of the
stage reads the sums a few times a second and shows them, so tasks never wait for a terminal.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TextIO

from bpe_beam.messages import format_bytes, format_seconds
from bpe_beam.terminal import Terminal, columns_of, is_terminal

MODES = ("auto", "bar", "plain", "json", "none")
"""The ways to show progress; auto is a bar on a terminal, and plain lines elsewhere."""

_LINE_SECONDS = 5.0  # the minimum time between two lines of a stage
_MAXIMUM_PLAIN_SECONDS = 60.0
"""The time between two plain lines of a stage that has taken 20 minutes or more."""
_MINIMUM_BAR, _MAXIMUM_BAR = 10, 40
"""The number of characters of a bar, without its brackets."""
_SINGULARS = {"passes": "pass"}  # of units whose plural has more than an s
_POLL_SECONDS = 0.2
_MAXIMUM_MOMENTS = 256
"""The maximum number of moments of a stage in memory; then every other one is dropped."""
_LAST_SHARE = 0.25
"""The last share of the work that is done, by whose rate the time left is estimated."""
_MINIMUM_LEFT = 0.1  # the share of the estimated time left below which a step counts as late
_now = time.monotonic
_lock = threading.Lock()
_reported: dict[str, Counter[str]] = {}
_forward: Callable[[str, dict[str, int]], None] | None = None
_note = ""


def report(stage: str, **increments: int) -> None:
    """Add to the counters of a stage, from any thread of this process.

    Cost: one lock and a few additions, about a microsecond. Call it once a batch.
    """
    if _forward is not None:
        _forward(stage, increments)
        return
    with _lock:
        _reported.setdefault(stage, Counter()).update(increments)


def note(text: str) -> None:
    """Show a text with the figures of all stages from now on; an empty one ends this."""
    global _note
    _note = text


def forward_to(receiver: Callable[[str, dict[str, int]], None]) -> None:
    """Forward all reports: the thread that reports calls `receiver` with the stage's name."""
    global _forward
    _forward = receiver


class Snapshot(NamedTuple):
    """A stage at one moment; unknown values are None."""

    stage: str
    done: int  # the amount that is done, in `unit`
    total: int | None
    unit: str
    # All other counters; names that begin with an underscore are not shown.
    counters: dict[str, int]
    seconds: float  # the seconds since the stage began
    eta_seconds: float | None = None  # the estimated seconds left
    # The share of `done` that earlier runs have done; the other counters leave it out.
    kept: int = 0
    note: str = ""  # why nothing goes on, if that is known

    @property
    def bytes(self) -> int | None:
        """The bytes of text in jobs over a corpus; without a counter, `done` if that is bytes."""
        return self.counters.get("bytes", self.done if self.unit == "bytes" else None)

    @property
    def bytes_per_second(self) -> int | None:
        """The mean speed since the stage began."""
        if self.bytes is None or self.seconds <= 0:
            return None
        return round(self.bytes / self.seconds)

    @property
    def percent(self) -> int | None:
        """The percentage that is done, 100 only at the end; None if the total is unknown."""
        if self.total is None:
            return None
        return 100 if self.done >= self.total else max(0, 100 * self.done // self.total)

    @property
    def shown_counters(self) -> dict[str, int]:
        return {name: n for name, n in self.counters.items() if not name.startswith("_")}


ShareOfTime = Callable[[Snapshot], float]
"""Returns the share of a stage's time that is usually over at a moment, from 0 to 1."""


class _TimeLeft:
    """Estimates the time left of a stage by the rate of the last share of its work."""

    def __init__(self) -> None:
        self._moments: list[tuple[float, float]] = []

    def seconds(
        self,
        seconds: float,
        begun: float,
        done: float,
        total: float,
        last_share: float = _LAST_SHARE,
    ) -> float | None:
        """Return the seconds left, from the work done before, so far and in total, in any unit.

        None if nothing is done yet. While a long step runs, the time left falls with the clock. A
        step that takes longer than all that was left lowers the rate.
        """
        moments = self._moments
        if done >= total:
            return 0.0
        if done <= begun:
            moments.clear()
            return None
        if not moments:
            moments.append((0.0, begun))
        if done > moments[-1][1]:
            if len(moments) >= _MAXIMUM_MOMENTS:
                del moments[1::2]
            moments.append((seconds, done))
        reported, done = moments[-1]
        amounts = [amount for _, amount in moments]
        position = bisect_right(amounts, done - last_share * (done - begun)) - 1
        since, before = moments[max(0, position)]
        steps_left = (total - done) / (done - before)
        left = (reported - since) * steps_left
        if seconds - reported > (1 - _MINIMUM_LEFT) * left:
            return round((seconds - since) * steps_left, 1)
        return round(left - (seconds - reported), 1)


class _Lines:
    """Shows a stage as lines: some while it goes on, and one at its end, unless it is an error."""

    def __init__(
        self, stream: TextIO, line: Callable[[Snapshot, bool], str], maximum_seconds: float
    ) -> None:
        self._stream = stream
        self._line = line
        self._maximum_seconds = maximum_seconds
        self._next = _LINE_SECONDS

    def show(self, snapshot: Snapshot) -> None:
        if snapshot.seconds >= self._next:
            pause = min(self._maximum_seconds, max(_LINE_SECONDS, snapshot.seconds / 20))
            # Count from now, not from when this line was due: missed lines are not made up for.
            self._next = snapshot.seconds + pause
            print(self._line(snapshot, False), file=self._stream, flush=True)

    def close(self, snapshot: Snapshot, finished: bool) -> None:
        if finished:
            print(self._line(snapshot, True), file=self._stream, flush=True)


def _json_line(snapshot: Snapshot, finished: bool) -> str:
    """Return a stage as a JSON object, without keys for unknown values."""
    line = {
        "stage": snapshot.stage,
        "done": snapshot.done,
        "total": snapshot.total,
        "unit": snapshot.unit,
        "kept": snapshot.kept or None,
        "documents": snapshot.counters.get("documents"),
        "bytes": snapshot.bytes,
        "seconds": round(snapshot.seconds, 1),
        "bytes_per_second": snapshot.bytes_per_second,
        "eta_seconds": 0.0 if finished else snapshot.eta_seconds,
        "note": snapshot.note or None,
    }
    line |= {name: n for name, n in snapshot.shown_counters.items() if name not in line}
    known = {name: value for name, value in line.items() if value is not None}
    return json.dumps(known, ensure_ascii=False)


def _plain_line(snapshot: Snapshot, finished: bool) -> str:
    """Return a stage as a line of text, for files and pipes."""
    done = "" if snapshot.percent is None else f"{snapshot.percent} %, "
    figures = ", ".join(_figures(snapshot, finished))
    return f"{snapshot.stage}: {'done, ' if finished else done}{figures}"


class _TerminalBar:
    """Shows a stage as one terminal line, which is overwritten and fits the terminal's width."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = ""

    def show(self, snapshot: Snapshot) -> None:
        self._write(snapshot, finished=False)

    def close(self, snapshot: Snapshot, finished: bool) -> None:
        self._write(snapshot, finished)
        print(file=self._stream, flush=True)

    def _write(self, snapshot: Snapshot, finished: bool) -> None:
        # A line that fills the last column makes some terminals begin another.
        line = _bar_line(snapshot, columns_of(self._stream) - 1, finished)
        if line != self._shown:
            print("\r" + line.ljust(len(self._shown)), end="", file=self._stream, flush=True)
            self._shown = line


def _bar_line(snapshot: Snapshot, columns: int, finished: bool = False) -> str:
    """Return a stage as one line of at most `columns` characters, with the figures that fit.

    For example `count  45% [####------] 1.2 of 2.7 GB, 15 s left, 80 MB/s`. A bar without room is
    left out.
    """
    percent = snapshot.percent
    name = snapshot.stage if percent is None else f"{snapshot.stage} {percent:3d}%"
    figures = _figures(snapshot, finished)
    minimum = 0 if percent is None else _MINIMUM_BAR + 3
    while figures and len(name) + minimum + 1 + len(", ".join(figures)) > columns:
        figures.pop()
    text = f" {', '.join(figures)}" if figures else ""
    room = min(_MAXIMUM_BAR, columns - len(name) - len(text) - 3)
    bar = ""
    if percent is not None and room >= _MINIMUM_BAR:
        full = room * percent // 100
        bar = f" [{'#' * full}{'-' * (room - full)}]"
    return (name + bar + text)[:columns]


def _figures(snapshot: Snapshot, finished: bool = False) -> list[str]:
    """Return the figures of a stage that follow its percentage, the most important first."""
    figures = [_amount(snapshot, finished)]
    if snapshot.note and not finished:
        figures.insert(0, snapshot.note)
    if finished:
        figures.append(format_seconds(snapshot.seconds))
    elif snapshot.eta_seconds:
        eta = snapshot.eta_seconds
        about = f"{max(1, round(eta))} s" if eta < 59.5 else format_seconds(eta)
        figures.append(f"{about} left")
    speed = snapshot.bytes_per_second
    if speed is not None:
        of_text = " of text" if snapshot.unit == "bytes" and "bytes" in snapshot.counters else ""
        figures.append(f"{format_bytes(speed)}/s{of_text}")
    figures += [
        f"{n:,} {name.replace('_', ' ')}"
        for name, n in snapshot.shown_counters.items()
        if name != "bytes"
    ]
    return figures


def _amount(snapshot: Snapshot, finished: bool) -> str:
    """Return how much is done, of how much: "1.2 GB of 2.7 GB", "400 of 1,000 merges"."""
    done, total = snapshot.done, snapshot.total
    if finished and snapshot.kept:
        ours = snapshot._replace(done=done - snapshot.kept, total=None, kept=0)
        before = _amount(ours._replace(done=snapshot.kept), finished)
        return f"{_amount(ours, finished)} and {before} kept from before"
    if finished and total == done:
        total = None
    if snapshot.unit == "bytes":
        of = "" if total is None else f" of {format_bytes(total)}"
        return format_bytes(done if total is None else min(done, total)) + of
    of = "" if total is None else f" of {total:,}"
    unit = snapshot.unit
    if (done if total is None else total) == 1:
        unit = _SINGULARS.get(unit, unit.removesuffix("s"))
    return f"{done:,}{of} {unit}"


class Stage:
    """A long step of a job, as a context manager; made by `Progress.stage`."""

    def __init__(
        self, name: str, total: int | None, unit: str, display: _TerminalBar | _Lines | None
    ) -> None:
        self.name = name
        self.total = total
        self.unit = unit
        self._display = display
        self._start = _now()
        # Returns the share of the time that is over; None: the share that is done.
        self.share_of_time: ShareOfTime | None = None
        self._minimum: dict[str, int] = {}
        self._before = 0
        self._time_left = _TimeLeft()
        self._stop = threading.Event()
        self._poller: threading.Thread | None = None

    def advance(self, done: int, **counters: int) -> None:
        """Add to `done`, in the stage's unit, and to other counters, from any thread."""
        report(self.name, done=done, **counters)

    def done_before(self, done: int) -> None:
        """Add what earlier runs have done, which says nothing about the speed of this one."""
        self._before += done
        self.advance(done)

    def at_least(self, done: int, **counters: int) -> None:
        """Set `done`, in the stage's unit, and other counters to at least these values."""
        with _lock:
            for name, minimum in {"done": done, **counters}.items():
                self._minimum[name] = max(self._minimum.get(name, 0), minimum)

    def put(self, **counters: int) -> None:
        """Set counters, but not `done`, whatever was reported before."""
        with _lock:
            for name, count in counters.items():
                _reported.setdefault(self.name, Counter())[name] = count
                self._minimum.pop(name, None)

    def snapshot(self) -> Snapshot:
        """Return the stage as it is now."""
        with _lock:
            counters = dict(_reported.get(self.name, {}))
            for name, minimum in self._minimum.items():
                counters[name] = max(counters.get(name, 0), minimum)
        done = counters.pop("done", 0)
        seconds = _now() - self._start
        kept = min(self._before, done)
        now = Snapshot(
            self.name, done, self.total, self.unit, counters, seconds, kept=kept, note=_note
        )
        if self.total is None:
            return now
        work, last_share = (float(kept), float(done), float(self.total)), _LAST_SHARE
        if self.share_of_time is not None:
            begun = self.share_of_time(now._replace(done=kept, counters={}))
            work, last_share = (begun, self.share_of_time(now), 1.0), 1.0
        with _lock:
            left = self._time_left.seconds(seconds, *work, last_share)
        return now._replace(eta_seconds=left)

    def __enter__(self) -> Stage:
        with _lock:
            _reported[self.name] = Counter()
        self._start = _now()
        if self._display is not None:
            self._poller = threading.Thread(target=self._poll, name="progress", daemon=True)
            self._poller.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._poller is not None:
            self._stop.set()
            self._poller.join()
        if self._display is not None:
            with self._surviving():
                self._display.close(self.snapshot(), finished=kind is None)
        with _lock:
            _reported.pop(self.name, None)

    def _poll(self) -> None:
        while self._display is not None and not self._stop.wait(_POLL_SECONDS):
            with self._surviving():
                self._display.show(self.snapshot())

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        """Stop showing the stage if stderr is closed, which must not end a job."""
        try:
            yield
        except (OSError, ValueError):
            self._display = None


class Progress:
    """Shows the progress and the warnings of a job."""

    def __init__(self, mode: str = "auto", *, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        if mode == "auto":
            mode = "bar" if is_terminal(self._stream) else "plain"
        self.mode = mode

    def warn(self, text: str) -> None:
        """Show a warning at once, also where progress is not shown."""
        message = Terminal(self._stream).wrap_message(f"warning: {text}")
        print(message, file=self._stream, flush=True)

    def stage(self, name: str, total: int | None, unit: str) -> Stage:
        """Return a stage, to be entered with `with`."""
        return Stage(name, total, unit, _display(self.mode, self._stream))


def _display(mode: str, stream: TextIO) -> _TerminalBar | _Lines | None:
    if mode == "bar":
        return _TerminalBar(stream)
    if mode == "plain":
        return _Lines(stream, _plain_line, _MAXIMUM_PLAIN_SECONDS)
    return _Lines(stream, _json_line, _LINE_SECONDS) if mode == "json" else None

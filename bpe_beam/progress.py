"""How far a job is, on stderr: a bar on a terminal, lines elsewhere, as text or as JSON.

Work reports from where it happens. The driver has the `Stage`; a DoFn that runs as a thread of this
process calls `report`, which only adds to a dictionary, so nothing of this has to be pickled. In
another process that dictionary is read by nobody, unless `forward_to` says where reports go. On a
runner whose workers are elsewhere the driver looks at what they finished, see `Stage.seen`. A
thread of the stage looks at it all a few times a second and draws; those who work never wait for a
terminal.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, TextIO

from bpe_beam.messages import format_bytes, format_seconds

MODES = ("auto", "bar", "plain", "json", "none")
"""How progress can be shown; auto is a bar on a terminal, and plain lines elsewhere."""

JSON_SECONDS = 5.0
"""Least time between two JSON lines of a stage."""

PLAIN_SECONDS = 5.0
MOST_PLAIN_SECONDS = 60.0
"""Least time between two plain lines of a stage: at its beginning, and after 20 minutes."""

LEAST_BAR, MOST_BAR = 10, 40
"""Characters of a bar, without its brackets."""

FALLBACK_COLUMNS = 80
"""The width of a terminal that does not tell."""

_POLL_SECONDS = 0.2
_lock = threading.Lock()
_reported: dict[str, dict[str, int]] = {}
_forward: Callable[[str, dict[str, int]], None] | None = None


def report(stage: str, **increments: int) -> None:
    """Adds to a stage's counters from anywhere in this process.

    Args:
        stage: The stage's name.
        **increments: What to add: `done` (in the stage's unit), `documents`, `bytes`, or any other.

    Cost: one lock and a few additions, about a microsecond. Call it once a batch.
    """
    if _forward is not None:
        _forward(stage, increments)
        return
    with _lock:
        counters = _reported.setdefault(stage, {})
        for name, increment in increments.items():
            counters[name] = counters.get(name, 0) + increment


def forward_to(receiver: Callable[[str, dict[str, int]], None]) -> None:
    """Has all reports of this process given to `receiver`, which takes them to where the stage is.

    Args:
        receiver: Takes a stage's name and what to add; called by the thread that reports.
    """
    global _forward
    _forward = receiver


@dataclass(frozen=True)
class Snapshot:
    """A stage at one moment.

    Attributes:
        stage: Its name.
        done: How much is done, in `unit`.
        total: How much there is, or None if nobody knows.
        unit: What `done` and `total` count.
        counters: Everything else that was reported.
        seconds: Time since the stage began.
    """

    stage: str
    done: int
    total: int | None
    unit: str
    counters: dict[str, int]
    seconds: float

    @property
    def bytes(self) -> int | None:
        """Bytes handled: the counter of that name, or what is done of a stage in bytes."""
        return self.counters.get("bytes", self.done if self.unit == "bytes" else None)

    @property
    def bytes_per_second(self) -> int | None:
        """Mean speed since the stage began."""
        if self.bytes is None or self.seconds <= 0:
            return None
        return round(self.bytes / self.seconds)

    @property
    def percent(self) -> int | None:
        """How much of the stage is done, from 0 to 100, or None if nobody knows the total. 100 is
        only said of a stage of which all is done."""
        if self.total is None:
            return None
        return 100 if self.done >= self.total else max(0, 100 * self.done // self.total)

    @property
    def eta_seconds(self) -> float | None:
        """Time left at the mean speed so far, or None if it cannot be known yet."""
        if self.total is None:
            return None
        left = max(0, self.total - self.done)
        if left == 0:
            return 0.0
        return round(self.seconds * left / self.done, 1) if self.done else None


class Display(Protocol):
    """What shows a stage."""

    def show(self, snapshot: Snapshot) -> None:
        """Shows where the stage is."""

    def close(self, snapshot: Snapshot, finished: bool) -> None:
        """Shows the end of the stage; `finished` is false if it failed."""


class JsonLines:
    """Shows a stage as JSON lines: at most one in `JSON_SECONDS`, and one at its end.

    A line has no key for what is not known.

    Args:
        stream: Where the lines go.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next = JSON_SECONDS

    def show(self, snapshot: Snapshot) -> None:
        """Writes a line if the last one is old enough."""
        if snapshot.seconds >= self._next:
            # From now, not from the last due time: a stage that was held up must not catch up.
            self._next = snapshot.seconds + JSON_SECONDS
            self._write(snapshot, snapshot.eta_seconds)

    def close(self, snapshot: Snapshot, finished: bool) -> None:
        """Writes the last line; a stage that failed gets none, its error says more."""
        if finished:
            self._write(snapshot, 0.0)

    def _write(self, snapshot: Snapshot, eta_seconds: float | None) -> None:
        line = {
            "stage": snapshot.stage,
            "done": snapshot.done,
            "total": snapshot.total,
            "unit": snapshot.unit,
            "documents": snapshot.counters.get("documents"),
            "bytes": snapshot.bytes,
            "seconds": round(snapshot.seconds, 1),
            "bytes_per_second": snapshot.bytes_per_second,
            "eta_seconds": eta_seconds,
        }
        line |= {name: n for name, n in snapshot.counters.items() if name not in line}
        known = {name: value for name, value in line.items() if value is not None}
        self._stream.write(json.dumps(known, ensure_ascii=False) + "\n")
        self._stream.flush()


class PlainLines:
    """Shows a stage as lines for people, for files and pipes; a last one when it is done.

    Lines come every `PLAIN_SECONDS` at first, and less often the longer the stage takes, down to
    one in `MOST_PLAIN_SECONDS`.

    Args:
        stream: Where the lines go.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next = PLAIN_SECONDS

    def show(self, snapshot: Snapshot) -> None:
        """Writes a line if the last one is old enough."""
        if snapshot.seconds < self._next:
            return
        self._next = snapshot.seconds + min(
            MOST_PLAIN_SECONDS, max(PLAIN_SECONDS, snapshot.seconds / 20)
        )
        percent = snapshot.percent
        done = "" if percent is None else f"{percent} %, "
        self._write(f"{snapshot.stage}: {done}{', '.join(_facts(snapshot))}")

    def close(self, snapshot: Snapshot, finished: bool) -> None:
        """Writes the last line; a stage that failed gets none, its error says more."""
        if finished:
            self._write(f"{snapshot.stage}: done, {', '.join(_facts(snapshot, finished))}")

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


class TerminalBar:
    """Shows a stage as one line of a terminal that is written over, as wide as the terminal is.

    Args:
        stream: A terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = ""

    def show(self, snapshot: Snapshot) -> None:
        """Writes the line anew, if it has changed."""
        self._write(snapshot, finished=False)

    def close(self, snapshot: Snapshot, finished: bool) -> None:
        """Leaves the line as it is at the end, and goes to the next."""
        self._write(snapshot, finished)
        self._stream.write("\n")
        self._stream.flush()

    def _write(self, snapshot: Snapshot, finished: bool) -> None:
        # A line that fills the last column makes some terminals begin another.
        line = bar_line(snapshot, _columns(self._stream) - 1, finished)
        if line != self._shown:
            self._stream.write("\r" + line.ljust(len(self._shown)))
            self._stream.flush()
            self._shown = line


def bar_line(snapshot: Snapshot, columns: int, finished: bool = False) -> str:
    """A stage in one line: its name, percentage, a bar, and as many facts as there is room for.

    Args:
        snapshot: The stage.
        columns: The most characters that the line may have, at least 1.
        finished: Whether the stage is done.

    Returns:
        E.g. `count  45% [####------] 1.2 of 2.7 GB, 15 s left, 80 MB/s`. The bar has at least
        `LEAST_BAR` characters or is left out.
    """
    percent = snapshot.percent
    name = snapshot.stage if percent is None else f"{snapshot.stage} {percent:3d}%"
    facts = _facts(snapshot, finished)
    least = 0 if percent is None else LEAST_BAR + 3
    while facts and len(name) + least + 1 + len(", ".join(facts)) > columns:
        facts.pop()
    text = f" {', '.join(facts)}" if facts else ""
    room = min(MOST_BAR, columns - len(name) - len(text) - 3)
    bar = ""
    if percent is not None and room >= LEAST_BAR:
        full = room * percent // 100
        bar = f" [{'#' * full}{'-' * (room - full)}]"
    return (name + bar + text)[:columns]


def _facts(snapshot: Snapshot, finished: bool = False) -> list[str]:
    """What a person is told of a stage beside its percentage, what matters most first."""
    facts = [_amount(snapshot, finished)]
    if finished:
        facts.append(format_seconds(snapshot.seconds))
    elif snapshot.eta_seconds:
        facts.append(f"{_about(snapshot.eta_seconds)} left")
    speed = snapshot.bytes_per_second
    if speed is not None:
        of_text = " of text" if snapshot.unit == "bytes" and "bytes" in snapshot.counters else ""
        facts.append(f"{format_bytes(speed)}/s{of_text}")
    facts += [
        f"{n:,} {name.replace('_', ' ')}"
        for name, n in snapshot.counters.items()
        if name != "bytes"
    ]
    return facts


def _amount(snapshot: Snapshot, finished: bool) -> str:
    """How much is done, of how much: "1.2 GB of 2.7 GB", "400 of 1,000 merges"."""
    done, total = snapshot.done, snapshot.total
    if finished and total == done:
        total = None
    if snapshot.unit == "bytes":
        of = "" if total is None else f" of {format_bytes(total)}"
        return format_bytes(done if total is None else min(done, total)) + of
    of = "" if total is None else f" of {total:,}"
    return f"{done:,}{of} {snapshot.unit}"


def _about(seconds: float) -> str:
    """A time that is an estimate, without fractions of seconds."""
    return f"{max(1, round(seconds))} s" if seconds < 59.5 else format_seconds(seconds)


def _columns(stream: TextIO) -> int:
    """The width of a terminal; `FALLBACK_COLUMNS` if it does not tell."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or FALLBACK_COLUMNS
    except (OSError, ValueError):
        return FALLBACK_COLUMNS


class Stage:
    """A long piece of a job, as a context manager; made by `Progress.stage`.

    Args:
        name: What it is called, and what `report` names it by.
        total: How much there is to do, in `unit`, or None; may be set when it becomes known.
        unit: What is counted, e.g. "bytes", "rounds", "merges".
        open_display: Makes what shows it; None shows nothing.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        name: str,
        total: int | None,
        unit: str,
        open_display: Callable[[], Display] | None,
        clock: Callable[[], float],
    ) -> None:
        self.name = name
        self.total = total
        self.unit = unit
        self._open_display = open_display
        self._display: Display | None = None
        self._clock = clock
        self._start = clock()
        self._seen: dict[str, int] = {}
        self._stop = threading.Event()
        self._poller: threading.Thread | None = None

    def advance(self, done: int, **counters: int) -> None:
        """Adds to what is done; from any thread.

        Args:
            done: How much more is done, in the stage's unit.
            **counters: What else to add, e.g. `documents=10, bytes=2_000`.
        """
        report(self.name, done=done, **counters)

    def seen(self, done: int, **counters: int) -> None:
        """Says that at least so much is done, reported or not.

        Args:
            done: In the stage's unit.
            **counters: What other counters stand at, at least.
        """
        with _lock:
            for name, least in {"done": done, **counters}.items():
                self._seen[name] = max(self._seen.get(name, 0), least)

    def put(self, **counters: int) -> None:
        """Sets counters, whatever was reported or seen before.

        Args:
            **counters: Any but `done`, e.g. `pieces=0` where another round begins.
        """
        with _lock:
            _reported.setdefault(self.name, {}).update(counters)
            for name in counters:
                self._seen.pop(name, None)

    def snapshot(self) -> Snapshot:
        """The stage now."""
        with _lock:
            counters = dict(_reported.get(self.name, {}))
            for name, least in self._seen.items():
                counters[name] = max(counters.get(name, 0), least)
        done = counters.pop("done", 0)
        seconds = self._clock() - self._start
        return Snapshot(self.name, done, self.total, self.unit, counters, seconds)

    def __enter__(self) -> Stage:
        """Starts the stage at zero."""
        with _lock:
            _reported[self.name] = {}
        self._start = self._clock()
        if self._open_display is not None:
            with self._surviving():
                self._display = self._open_display()
            self._poller = threading.Thread(target=self._poll, name="progress", daemon=True)
            self._poller.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the stage."""
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
        """Shows nothing more once stderr is gone: that must not end a job."""
        try:
            yield
        except (OSError, ValueError):
            self._display = None


class Progress:
    """What a job shows of itself while it runs.

    Args:
        mode: One of `MODES`.
        quiet: Show nothing, the same as the mode none.
        stream: Where to; stderr unless told.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        mode: str = "auto",
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream if stream is not None else sys.stderr
        if quiet:
            mode = "none"
        if mode == "auto":
            mode = "bar" if _is_terminal(self._stream) else "plain"
        self.mode = mode
        self._clock = clock

    def warn(self, text: str) -> None:
        """Show a warning at once, also where progress is not shown."""
        print(f"warning: {text}", file=self._stream, flush=True)

    def stage(self, name: str, total: int | None, unit: str) -> Stage:
        """A stage, to be entered with `with`.

        Args:
            name: What it is called, and what `report` names it by. One stage of a name at a time.
            total: How much there is to do, or None if nobody knows.
            unit: What `done` counts, e.g. "bytes", "rounds", "merges".
        """
        return Stage(name, total, unit, None if self.mode == "none" else self._display, self._clock)

    def _display(self) -> Display:
        kinds: dict[str, Callable[[TextIO], Display]] = {
            "bar": TerminalBar,
            "plain": PlainLines,
            "json": JsonLines,
        }
        return kinds[self.mode](self._stream)


def _is_terminal(stream: TextIO) -> bool:
    """Whether lines can be written over there."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False

"""How far a job is, on stderr: a bar on a terminal, JSON lines elsewhere, nothing when quiet.

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
from typing import Any, Protocol, TextIO

JSON_SECONDS = 5.0
"""Least time between two JSON lines of a stage."""

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
    """Shows a stage as JSON lines: one at a time of `JSON_SECONDS`, and one at its end.

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
        self._stream.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._stream.flush()


class TerminalBar:
    """Shows a stage as a bar that is redrawn in place.

    Args:
        stream: A terminal.
        snapshot: The stage at its beginning.
    """

    def __init__(self, stream: TextIO, snapshot: Snapshot) -> None:
        from tqdm import tqdm  # ten milliseconds that --help and pipes need not pay

        in_bytes = snapshot.unit == "bytes"
        # On a terminal that does not tell its size tqdm finds no room and shows nothing.
        wide = _columns(stream) > 0
        self._bar: tqdm[Any] = tqdm(
            total=snapshot.total,
            desc=snapshot.stage,
            unit="B" if in_bytes else f" {snapshot.unit}",
            unit_scale=in_bytes,
            file=stream,
            dynamic_ncols=wide,
            ncols=None if wide else 100,
            nrows=None if wide else 24,
            mininterval=0,
            miniters=0,
            delay=0,
        )

    def show(self, snapshot: Snapshot) -> None:
        """Redraws the bar."""
        total = self._bar.total = snapshot.total
        # tqdm drops its bar when more is done than there is.
        self._bar.n = snapshot.done if total is None else min(snapshot.done, total)
        parts = []
        counters = {name: n for name, n in snapshot.counters.items() if name != "bytes"}
        if snapshot.unit != "bytes" and snapshot.bytes is not None:
            parts.append(f"{snapshot.bytes / 1e6:,.1f} MB")
            parts.append(f"{(snapshot.bytes_per_second or 0) / 1e6:,.1f} MB/s")
        parts += [f"{n:,} {name.replace('_', ' ')}" for name, n in counters.items()]
        self._bar.set_postfix_str(", ".join(parts), refresh=False)
        self._bar.refresh()

    def close(self, snapshot: Snapshot, finished: bool) -> None:
        """Leaves the bar as it is and goes to the next line."""
        self.show(snapshot)
        self._bar.close()


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


class Stage:
    """A long piece of a job, as a context manager; made by `Progress.stage`.

    Args:
        name: What it is called, and what `report` names it by.
        total: How much there is to do, in `unit`, or None; may be set when it becomes known.
        unit: What is counted, e.g. "bytes", "splits", "merges".
        open_display: Makes what shows it; None shows nothing.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        name: str,
        total: int | None,
        unit: str,
        open_display: Callable[[Snapshot], Display] | None,
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
                self._display = self._open_display(self.snapshot())
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
        quiet: Show nothing.
        stream: Where to; stderr unless told. A bar if it is a terminal, JSON lines if not.
        clock: Seconds, from any start.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.quiet = quiet
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock

    def stage(self, name: str, total: int | None, unit: str) -> Stage:
        """A stage, to be entered with `with`.

        Args:
            name: What it is called, and what `report` names it by. One stage of a name at a time.
            total: How much there is to do, or None if nobody knows.
            unit: What `done` counts, e.g. "bytes", "splits", "merges".
        """
        return Stage(name, total, unit, None if self.quiet else self._display, self._clock)

    def _display(self, snapshot: Snapshot) -> Display:
        if self._stream.isatty():
            return TerminalBar(self._stream, snapshot)
        return JsonLines(self._stream)

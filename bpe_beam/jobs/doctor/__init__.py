"""The doctor job: what works on this machine, what is missing, and what to do about it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec
from msgspec import Struct

from bpe_beam.jobs.doctor import machine, runners, stores
from bpe_beam.jobs.doctor.checks import Check, PlannedCheck, within
from bpe_beam.jobs.doctor.stores import check_path
from bpe_beam.jobs.output import write_json
from bpe_beam.progress import Progress
from bpe_beam.settings.doctor import DoctorSettings
from bpe_beam.storage import redact
from bpe_beam.terminal import Terminal, visible

_STYLES = {"works": "green", "missing": "yellow", "fails": "red", "unknown": "cyan"}

TIME_LIMIT = 60  # time limit in seconds of a program that a check starts


class DoctorSummary(Struct, frozen=True):
    """The summary of `doctor`; everything required `works`, and what is missing is optional."""

    job: str
    works: bool
    checks: list[Check]
    seconds: float


def run(settings: DoctorSettings, _progress: Progress) -> DoctorSummary:
    """Run all checks at once, and write their results to stdout."""
    started = time.monotonic()
    options = settings.run.storage_options
    planned: list[PlannedCheck] = [
        *machine.checks(),
        *runners.checks(TIME_LIMIT),
        *stores.checks(options),
        *(("paths", redact(path), partial(check_path, path, options)) for path in settings.paths),
    ]
    # A call that hangs keeps only the thread of `within`; these threads end at the time limit.
    with ThreadPoolExecutor(len(planned)) as pool:
        checks = list(pool.map(lambda one: within(TIME_LIMIT + 1, *one), planned))
    summary = DoctorSummary(
        job="doctor",
        works=all(check.status != "fails" for check in checks),
        checks=checks,
        seconds=round(time.monotonic() - started, 3),
    )
    if settings.format == "json":
        write_json(msgspec.to_builtins(summary), "-", {})
    else:
        for line in _lines(checks, Terminal(sys.stdout)):
            print(line)
    return summary


def _lines(checks: list[Check], terminal: Terminal) -> Iterator[str]:
    width = max(len(check.name) for check in checks)
    area = None
    for check in checks:
        if check.area != area:
            area = check.area
            yield terminal.paint(area, "bold")
        status = terminal.paint(f"{check.status:7}", _STYLES[check.status])
        later = " " * (width + 13)
        # A painted status has characters that take no columns.
        line = f"{visible(check.name):{width}}  {visible(check.result)}"
        first, *others = terminal.wrap(line, indent=" " * 11, later=later)
        yield f"  {status}  {first[11:]}"
        yield from others
        if check.remedy is not None:
            for line in terminal.wrap(check.remedy, indent=f"{later}-> ", later=f"{later}   "):
                yield terminal.paint(line, "dim")

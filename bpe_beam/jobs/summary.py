"""What a job says at its end: aligned lines for people, JSON for programs.

A summary is a plain dictionary that a job returns. Its keys name the units: `..._bytes`, `bytes`,
`seconds`, `..._per_second`. Three keys are read by name: `job`; `next`, commands worth running now;
and `rounds`, of which people see the main columns. A value that is itself a dictionary is shown
indented, a dictionary of dictionaries with a line for each; None is left out for people.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from bpe_beam.jobs.job_record import json_bytes

_MOST_LINES = 20
_OF_ROUNDS = (
    "round", "merges", "threshold", "learned_from", "segments", "shuffled_bytes", "seconds"
)  # fmt: skip


def format_summary(summary: Mapping[str, Any]) -> str:
    """Writes a summary for people.

    Args:
        summary: What a job returned.

    Returns:
        Lines, each ended by a newline: a title, aligned values, and what to run next.
    """
    title = f"bpe-beam {summary['job']}" if "job" in summary else "bpe-beam"
    rows = list(_rows("  ", {k: v for k, v in summary.items() if k not in ("job", "next")}))
    width = max((len(label) for label, _ in rows), default=0)
    lines = [title, *(f"{label:{width}}  {value}".rstrip() for label, value in rows)]
    commands = summary.get("next") or []
    if commands:
        lines += ["next:", *(f"  {command}" for command in commands)]
    return "\n".join(lines) + "\n"


def show_summary(summary: Mapping[str, Any], stream: TextIO) -> None:
    """Shows a summary to people; silently not, if the stream is closed.

    Args:
        summary: What a job returned.
        stream: stderr, as a rule.
    """
    try:
        stream.write(format_summary(summary))
        stream.flush()
    except (OSError, ValueError):
        pass  # the job is done, and its results stand: nobody reading along does not undo it


def write_summary(
    summary: Mapping[str, Any],
    target: str,
    storage_options: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Writes a summary as JSON.

    Args:
        summary: What a job returned, JSON-able.
        target: A path or URL; `-` is stdout.
        storage_options: Options of file systems by protocol.
    """
    data = json_bytes(dict(summary))
    if target == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    from bpe_beam.storage import Storage  # loads fsspec, which - does not need

    Storage(storage_options or {}).write_bytes(target, data)


def format_bytes(count: int) -> str:
    """A number of bytes in the unit that suits it, powers of 1,000: "1.2 GB"."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if abs(size) < 999.5 or unit == "PB":
            break
        size /= 1000
    if unit == "B" or abs(size) >= 999.5:
        return f"{size:,.0f} {unit}"
    return f"{size:.3g} {unit}"


def format_seconds(seconds: float) -> str:
    """A time in the units that suit it: "0.42 s", "12.3 s", "2 min 5 s", "3 h 4 min"."""
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def quoted(text: str) -> str:
    """A name as people can read it: in quotes if it is empty, begins or ends with a blank, or holds
    what a terminal would obey."""
    return text if text and text.isprintable() and text == text.strip() else repr(text)


def _rows(indent: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        label = indent + key.replace("_", " ")
        if value is None:
            continue
        if key == "rounds":
            yield from _rounds(label, value)
        elif isinstance(value, Mapping) and any(isinstance(v, Mapping) for v in value.values()):
            yield label, ""
            yield from _lines(indent + "  ", value)
        elif isinstance(value, Mapping):
            yield label, "" if value else "none"
            yield from _rows(indent + "  ", value)
        elif isinstance(value, list | tuple):
            yield label, _value(key, value[0]) if value else "none"
            yield from (("", _value(key, each)) for each in value[1:])
        else:
            yield label, _value(key, value)


def _rounds(label: str, rounds: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """How many there were, and a table of the last of them."""
    shown = rounds[-_MOST_LINES:]
    last = f", the last {len(shown)}" if len(shown) < len(rounds) else ""
    yield label, f"{len(rounds):,} ({format_seconds(sum(row['seconds'] for row in rounds))}){last}"
    cells = [[name.replace("_", " ") for name in _OF_ROUNDS]] if shown else []
    cells += [[_short(name, row[name]) for name in _OF_ROUNDS] for row in shown]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "", "  ".join(map(str.rjust, row, widths))


def _lines(indent: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """A line for each of the first of many dictionaries, among which single values may be."""
    for name, row in list(values.items())[:_MOST_LINES]:
        if not isinstance(row, Mapping):
            yield indent + name, _value(name, row)
            continue
        facts = (
            f"{key.replace('_', ' ')} {_short(key, value)}"
            for key, value in row.items()
            if value is not None
        )
        yield indent + quoted(name), ", ".join(facts)
    if len(values) > _MOST_LINES:
        yield indent + f"and {len(values) - _MOST_LINES:,} more", ""


def _short(key: str, value: Any) -> str:
    return _value(key, value).partition(" (")[0]


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if key.endswith("bytes_per_second"):
            return f"{format_bytes(round(value))}/s"
        if key == "bytes" or key.endswith("_bytes"):
            exact = f" ({value:,} bytes)" if value >= 1000 else ""
            return format_bytes(round(value)) + exact
        if key == "seconds" or key.endswith("_seconds"):
            return format_seconds(value)
        return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return quoted(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

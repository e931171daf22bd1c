"""The summary of a job as people read it: aligned lines.

The keys of a summary name the units: `..._bytes`, `bytes`, `seconds`, `..._per_second`. Some keys
have a meaning: `job`; `warnings`, a list of sentences or None; `next`, commands worth running now;
and `rounds`, of which people see the number and the time. A dictionary is shown indented, a
dictionary of dictionaries as a table; None is left out. At the end of a job people see a
part of the summary, see `for_people`.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bpe_beam.messages import and_more, format_bytes, format_seconds, quoted
from bpe_beam.terminal import Terminal, width_of

_MOST_LINES = 20
_LINES_AT_THE_END = 5
_DETAILS = frozenset(
    {
        "counters", "counting_seconds", "distributions", "fingerprint", "last_merge_count",
        "learning_seconds", "merge_rounds", "merge_rounds_because", "merges", "runner",
        "tokenize", "train", "verify", "warnings", "words", "workers",
    }
)  # fmt: skip
"""Figures for the JSON only. `warnings` are shown before the summary."""

_HISTOGRAMS = frozenset({"tokens_by_characters", "words_by_characters", "words_by_count"})
"""Figures that are shown with bars: the length is that of the first number of a row."""

_HEADING = 10
"""The columns of a line of a table's heading, if no value of its column is wider."""

_LEAST_BAR, _MOST_BAR = 6, 24
"""The columns of the longest bar: as many as a line has room for."""

_BAR_AND_FIGURES = 54
"""The columns of a bar and the figures behind it, for terminals of 80 columns."""

_NOTHING_WRONG = frozenset({"rejects"})
"""Figures that people see only if they are not 0."""


def format_summary(
    title: str, summary: Mapping[str, Any], *, exact: bool = True, terminal: Terminal | None = None
) -> str:
    """Return a summary as lines: a title, aligned values, and what to run next.

    Args:
        title: The first line.
        summary: The summary of a job, as JSON values.
        exact: Whether a size has its bytes in parentheses.
        terminal: The terminal that shows it; None: no colours.
    """
    paint = (lambda text, style: text) if terminal is None else terminal.paint
    values = {key: value for key, value in summary.items() if key not in ("job", "next")}
    rows = list(_rows("  ", values, exact))
    width = max((width_of(label) for label, _ in rows), default=0)
    lines = [paint(title, "bold")]
    for label, value in rows:
        padding = " " * (width - width_of(label)) + "  " if value else ""
        lines.append(paint(label, "cyan") + padding + value)
    commands = summary.get("next") or []
    if commands:
        lines += ["next:", *(f"  {command}" for command in commands)]
    return "\n".join(lines)


def for_people(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a summary that a person needs at the end of a job.

    A figure that this module does not know is kept.
    """
    shown: dict[str, Any] = {}
    for key, value in summary.items():
        if key in _DETAILS or (key in _NOTHING_WRONG and value == 0):
            continue
        if key == "sources" and value is not None and len(value) > _LINES_AT_THE_END:
            first = dict(list(value.items())[:_LINES_AT_THE_END])
            shown[key] = {**first, and_more(len(value) - len(first)): {}}
        else:
            shown[key] = value
    return shown


def _rows(indent: str, values: Mapping[str, Any], exact: bool) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        label = indent + key.replace("_", " ")
        if value is None:
            continue
        if key == "rounds":
            yield label, f"{len(value):,} ({format_seconds(sum(row['seconds'] for row in value))})"
        elif key in _HISTOGRAMS:
            yield label, "" if value else "none"
            yield from _bars(indent + "  ", value)
        elif isinstance(value, Mapping) and any(isinstance(v, Mapping) for v in value.values()):
            yield from _table(label, value)
        elif isinstance(value, Mapping):
            yield label, "" if value else "none"
            yield from _rows(indent + "  ", value, exact)
        elif isinstance(value, list | tuple):
            yield label, _value(key, value[0], exact) if value else "none"
            yield from (("", _value(key, each, exact)) for each in value[1:])
        else:
            yield label, _value(key, value, exact)


def _bars(indent: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a line with a bar for each row, which is a number or several by name."""
    rows = {
        name: list(row.items()) if isinstance(row, Mapping) else [("", row)]
        for name, row in values.items()
    }
    most = max((row[0][1] for row in rows.values()), default=0)
    columns = zip(*rows.values(), strict=True)
    widths = [max(len(f"{number:,}") for _, number in column) for column in columns]
    figures = {
        name: ", ".join(
            f"{number:>{width},} {unit.replace('_', ' ')}".rstrip()
            for (unit, number), width in zip(row, widths, strict=True)
        )
        for name, row in rows.items()
    }
    room = _BAR_AND_FIGURES - 2 - max(map(len, figures.values()), default=0)
    longest = min(_MOST_BAR, max(_LEAST_BAR, room))
    for name, row in rows.items():
        bar = "#" * -(-longest * row[0][1] // most) if most else ""
        yield indent + name, f"{bar:{longest}}  {figures[name]}"


def _table(label: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a heading, and a line for each of the first values: dictionaries, or single ones."""
    indent = label[: len(label) - len(label.lstrip())] + "  "
    shown = dict(list(values.items())[:_MOST_LINES])
    rows = [row for row in shown.values() if isinstance(row, Mapping)]
    keys = dict.fromkeys(key for row in rows for key in row)
    columns = [_column(key, [row.get(key) for row in rows]) for key in keys]
    lines = _bottom_aligned(columns, len(rows))
    *above, heading = lines[: len(lines) - len(rows)] or [""]
    of_rows = iter(lines[len(lines) - len(rows) :])
    yield from (("", line) for line in above)
    yield label, heading
    for name, row in shown.items():
        if isinstance(row, Mapping):
            yield indent + quoted(name), next(of_rows)
        else:
            yield indent + name, _value(name, row, exact=False)
    if len(values) > len(shown):
        yield indent + and_more(len(values) - len(shown)), ""


def _column(key: str, values: Sequence[Any]) -> list[str]:
    """Return the lines of a column: its heading, on as many lines as it needs, and its values."""
    cells = ["" if value is None else _value(key, value, exact=False) for value in values]
    most = max(_HEADING, *map(width_of, cells)) if any(cells) else 0
    heading = textwrap.wrap(key.replace("_", " "), most, break_long_words=False) if most else []
    width = max(map(width_of, (*heading, *cells)), default=0)
    return [" " * (width - width_of(cell)) + cell for cell in (*heading, *cells)]


def _bottom_aligned(columns: Sequence[list[str]], rows: int) -> list[str]:
    """Return the lines of columns that end together; those without any value are left out."""
    kept = [column for column in columns if len(column) > rows]
    depth = max(map(len, kept), default=rows)
    filled = [[" " * width_of(column[0])] * (depth - len(column)) + column for column in kept]
    lines = ["  ".join(cells).rstrip() for cells in zip(*filled, strict=True)]
    return lines or [""] * rows


def _value(key: str, value: Any, exact: bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if key.endswith("bytes_per_second"):
            return f"{format_bytes(round(value))}/s"
        if key == "bytes" or key.endswith("_bytes"):
            whole = f" ({value:,} bytes)" if exact and value >= 1000 else ""
            return format_bytes(round(value)) + whole
        if key == "seconds" or key.endswith("_seconds"):
            return format_seconds(value)
        return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return quoted(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

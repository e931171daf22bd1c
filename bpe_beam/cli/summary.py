"""The summary of a job as people read it: aligned lines.

The keys of a summary name the units: `..._bytes`, `bytes`, `seconds`, `..._per_second`. Some keys
have a meaning: `job`; `warnings`, a list of sentences or None; `next`, commands worth running now;
and `rounds`, shown as their number and time. A dictionary is shown indented, a dictionary of
dictionaries as a table, None not at all. The end of a job shows a part of the summary, see
`for_people`.
"""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bpe_beam.messages import and_more, format_bytes, format_seconds, quoted
from bpe_beam.terminal import Terminal, cut, width_of

_MAX_LINES = 20
_LINES_AT_THE_END = 5
_DETAILS = frozenset(
    {
        "counters", "counting_seconds", "distributions", "fingerprint", "last_merge_count",
        "learning_seconds", "merge_rounds", "merge_rounds_because", "merges",
        "pieces_by_pass", "runner", "tokenize", "train", "verify", "warnings", "words", "workers",
    }
)  # fmt: skip
"""Figures for the JSON only. `warnings` are shown before the summary."""

_HISTOGRAMS = frozenset({"tokens_by_characters", "words_by_characters", "words_by_count"})
"""Figures that are shown with bars, whose length is the first number of a row."""

_OF_NAMES = frozenset({"bytes_per_token_by_source"})
"""Tables whose columns are names that users have chosen, without a unit."""

_HEADING = 10  # the width of a table's heading, if no value of its column is wider

_MIN_BAR, _MAX_BAR = 6, 24
"""The minimum and maximum width of the longest bar."""

_BAR_AND_FIGURES = 54  # the width of a bar and its figures where lines have no limit

_MIN_LABEL = 8
"""The width of labels on a narrow terminal: longer ones have a separate line, or are shortened."""

_LAST = ("seconds", "bytes_per_second", "text_bytes_per_second")  # figures that end a summary

_ESTIMATED = frozenset(
    {
        "documents", "text bytes", "unique words", "tokens", "seconds", "memory bytes",
        "storage bytes", "temporary bytes", "worker memory bytes", "driver memory bytes",
    }
)  # fmt: skip
"""The labels of figures that a dry run estimates."""


def format_summary(
    title: str, summary: Mapping[str, Any], *, exact: bool = True, terminal: Terminal | None = None
) -> str:
    """Return a summary as lines: a title, aligned values, and what to run next."""
    if terminal is None:
        terminal = Terminal(io.StringIO(), {})
    values = {key: value for key, value in summary.items() if key not in ("job", "next")}
    width = max((width_of(row.label) for row in _rows("  ", values, exact, None)), default=0)
    room = None
    if terminal.columns is not None:
        width = min(width, max(terminal.columns // 2 - 2, _MIN_LABEL))
        room = max(1, terminal.columns - width - 2)
    lines = [terminal.paint(line, "bold") for line in terminal.wrap(title)]
    for row in _rows("  ", values, exact, room):
        if summary.get("dry_run") and row.label.strip() in _ESTIMATED:
            row = row._replace(value=f"about {row.value}")
        lines += _lines(row, width, terminal)
    commands = summary.get("next") or []
    if commands:
        lines.append("next:")
        for command in commands:
            lines += terminal.wrap_command(command, indent="  ")
    return "\n".join(lines)


class _Row(NamedTuple):
    """A line of a summary: its label and its value."""

    label: str
    value: str
    # Whether the value is aligned with the values of other rows, and fits already.
    aligned: bool = False


def _lines(row: _Row, width: int, terminal: Terminal) -> list[str]:
    """Return the lines of a row on a terminal, whose labels are `width` wide."""
    label, value = row.label, row.value
    if not value:
        return [terminal.paint(line, "cyan") for line in terminal.wrap(label)]
    above: list[str] = []
    if width_of(label) > width and row.aligned:
        label = cut(label, width, terminal.ellipsis)
    elif width_of(label) > width:
        above = [terminal.paint(line, "cyan") for line in terminal.wrap(label)]
        label = ""
    before = " " * (width + 2)
    first, *others = [value] if row.aligned else terminal.wrap(value, indent=before, later=before)
    first = first.removeprefix(before) if not row.aligned else first
    padding = " " * (width - width_of(label)) + "  "
    return [*above, terminal.paint(label, "cyan") + padding + first, *others]


def for_people(summary: Mapping[str, Any]) -> dict[str, object]:
    """Return the part of a summary that a person needs at the end of a job.

    Figures that this module does not know are shown.
    """
    shown: dict[str, object] = {}
    for key, value in sorted(summary.items(), key=lambda row: row[0] in _LAST):
        if key in _DETAILS or (key == "rejects" and value == 0):
            continue
        if key == "weights" and isinstance(value, Mapping):
            names = ("weight", "weighted_share")
            shown[key] = {source: {n: row[n] for n in names} for source, row in value.items()}
        elif key == "sources" and value is not None and len(value) > _LINES_AT_THE_END:
            first = dict(list(value.items())[:_LINES_AT_THE_END])
            shown[key] = {**first, and_more(len(value) - len(first)): {}}
        else:
            shown[key] = value
    return shown


def _rows(indent: str, values: Mapping[str, Any], exact: bool, room: int | None) -> Iterator[_Row]:
    """Yield the rows of values; the aligned ones fit into `room` columns, if that is not None."""
    for key, value in values.items():
        label = indent + key.replace("_", " ")
        if value is None:
            continue
        if key == "rounds":
            seconds = format_seconds(sum(row["seconds"] for row in value))
            yield _Row(label, f"{len(value):,} ({seconds})")
        elif key in _HISTOGRAMS:
            yield _Row(label, "" if value else "none")
            yield from _bars(indent + "  ", value, room)
        elif isinstance(value, Mapping) and any(isinstance(v, Mapping) for v in value.values()):
            yield from _table(label, value, room, of_names=key in _OF_NAMES)
        elif isinstance(value, Mapping):
            yield _Row(label, "" if value else "none")
            yield from _rows(indent + "  ", value, exact, room)
        elif isinstance(value, list | tuple):
            yield _Row(label, _value(key, value[0], exact) if value else "none")
            yield from (_Row("", _value(key, each, exact)) for each in value[1:])
        else:
            yield _Row(label, _value(key, value, exact))


def _bars(indent: str, values: Mapping[str, Any], room: int | None) -> Iterator[_Row]:
    """Yield a line with a bar for each row, which is a number or several by name.

    If a bar has no room, only the figures are shown.
    """
    rows = {
        name: list(row.items()) if isinstance(row, Mapping) else [("", row)]
        for name, row in values.items()
    }
    highest = max((row[0][1] for row in rows.values()), default=0)
    columns = zip(*rows.values(), strict=True)
    widths = [max(len(f"{number:,}") for _, number in column) for column in columns]
    figures = {
        name: ", ".join(
            f"{number:>{width},} {unit.replace('_', ' ')}".rstrip()
            for (unit, number), width in zip(row, widths, strict=True)
        )
        for name, row in rows.items()
    }
    columns_left = (_BAR_AND_FIGURES if room is None else room) - 2
    columns_left -= max(map(len, figures.values()), default=0)
    if room is not None and columns_left < _MIN_BAR:
        yield from (_Row(indent + name, text.strip()) for name, text in figures.items())
        return
    longest = min(_MAX_BAR, max(_MIN_BAR, columns_left))
    for name, row in rows.items():
        bar = "#" * -(-longest * row[0][1] // highest) if highest else ""
        yield _Row(indent + name, f"{bar:{longest}}  {figures[name]}", aligned=True)


def _table(
    label: str, values: Mapping[str, Any], room: int | None, *, of_names: bool
) -> Iterator[_Row]:
    """Yield a heading, and a line for each of the first values: dictionaries or single values.

    Columns that do not fit follow as another table.
    """
    indent = label[: len(label) - len(label.lstrip())] + "  "
    shown = dict(list(values.items())[:_MAX_LINES])
    rows = [row for row in shown.values() if isinstance(row, Mapping)]
    keys = dict.fromkeys(key for row in rows for key in row)
    columns = [_column(key, [row.get(key) for row in rows], of_names=of_names) for key in keys]
    filled = [column for column in columns if len(column) > len(rows)]
    for number, block in enumerate(_blocks(filled, room)):
        # All columns end together, below headings of different heights.
        depth = max(map(len, block), default=len(rows))
        padded = [[" " * width_of(each[0])] * (depth - len(each)) + each for each in block]
        lines = ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]
        lines = lines or [""] * len(rows)
        *above, heading = lines[: len(lines) - len(rows)] or [""]
        of_rows = iter(lines[len(lines) - len(rows) :])
        yield from (_Row("", line, aligned=True) for line in above)
        yield _Row(label, heading, aligned=bool(heading))
        for name, row in shown.items():
            if isinstance(row, Mapping):
                line = next(of_rows)
                yield _Row(indent + quoted(name), line, aligned=bool(line))
            elif number == 0:
                yield _Row(indent + name, _value(name, row, exact=False))
    if len(values) > len(shown):
        yield _Row(indent + and_more(len(values) - len(shown)), "")


def _blocks(columns: Sequence[list[str]], room: int | None) -> Iterator[Sequence[list[str]]]:
    """Yield the columns in blocks that fit into `room`; a single column may be wider."""
    block: list[list[str]] = []
    width = 0
    for column in columns:
        more = width_of(column[0]) + 2
        if block and room is not None and width + more - 2 > room:
            yield block
            block, width = [], 0
        block.append(column)
        width += more
    yield block


def _column(key: str, values: Sequence[Any], *, of_names: bool) -> list[str]:
    """Return the lines of a column: its heading, on as many lines as it needs, and its values."""
    unit, title = ("", quoted(key)) if of_names else (key, key.replace("_", " "))
    cells = ["" if value is None else _value(unit, value, exact=False) for value in values]
    widest = max(_HEADING, *map(width_of, cells)) if any(cells) else 0
    heading = textwrap.wrap(title, widest, break_long_words=False) if widest else []
    width = max(map(width_of, (*heading, *cells)), default=0)
    return [" " * (width - width_of(cell)) + cell for cell in (*heading, *cells)]


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

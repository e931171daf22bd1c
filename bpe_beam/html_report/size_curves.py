"""Charts of figures by the size of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bpe_beam.html_report import charts
from bpe_beam.html_report.charts import Axis, Point
from bpe_beam.html_report.figures import FIGURES, SHARES, Variables, as_text, colour_of, markup
from bpe_beam.html_report.source_figures import largest_first
from bpe_beam.html_report.visible import visible

MOST_LINES = 8
"""The most sources of a chart."""

_CURVES = ("tokens_per_word", "bytes_per_token", "words_kept_whole", "renyi_efficiency")


def size_curves(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[Variables]:
    """Yield a chart for each figure of the report's rows, and one of the sources of each row."""
    if not any(row["curve"] for row in rows):
        return
    by_row = [_sizes(row) for row in rows]
    sizes = {one["vocab_size"] for figures in by_row for one in figures}
    x = Axis("vocabulary", format=charts.short, log=True, values=sorted(sizes))
    for key in _CURVES:
        points = [
            (number, one["vocab_size"], one["total"].get(key), names[number])
            for number, figures in enumerate(by_row)
            for one in figures
        ]
        yield _curve(FIGURES[key][0], x, key, points)
    for row, name in zip(rows, names, strict=True):
        if row["curve"] and row["figures"]["sources"]:
            yield _sources_curve(row, name, x)


def _sizes(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the figures of all sizes of a tokenizer, the smallest first."""
    return [*row["curve"], row["figures"]]


def _sources_curve(row: Mapping[str, Any], name: str, x: Axis) -> Variables:
    """Return the chart of a tokenizer's largest sources."""
    key = "bytes_per_token"
    sizes = {source: one["bytes"] for source, one in row["figures"]["sources"].items()}
    largest = largest_first(sizes)[:MOST_LINES]
    points = [
        (series, one["vocab_size"], one["sources"][source].get(key), visible(source))
        for series, source in enumerate(largest)
        for one in _sizes(row)
    ]
    curve = _curve(f"Bytes a token by source, {name}", x, key, points)
    legend = [(colour_of(n), visible(source)) for n, source in enumerate(largest)]
    note = "The largest sources." if len(sizes) > len(largest) else ""
    return {**curve, "legend": legend, "note": note}


def _curve(
    title: str, x: Axis, key: str, points: Sequence[tuple[int, int, float | None, str]]
) -> Variables:
    """Return the chart of a figure from its points: series, size, value and name."""
    known = [(n, size, value, name) for n, size, value, name in points if value is not None]
    svg = charts.lines(
        [
            Point(n, size, value, f"{name}, {size:,} tokens\n{as_text(key, value)}")
            for n, size, value, name in known
        ],
        x,
        Axis("", format=charts.percent if key in SHARES else charts.number),
    )
    return {
        "title": title,
        "note": "",
        "svg": markup(svg),
        "head": ["Name", "Vocabulary", title],
        "rows": [[name, f"{size:,}", as_text(key, value)] for _, size, value, name in known],
    }

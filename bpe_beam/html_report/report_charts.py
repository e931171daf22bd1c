"""The charts of a report: figures by the size of the vocabulary, and figures of its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bpe_beam.html_report import charts
from bpe_beam.html_report.charts import Axis, Point
from bpe_beam.html_report.figures import (
    FIGURES,
    SHARES,
    Evaluated,
    Variables,
    as_text,
    colour_of,
    visible,
)
from bpe_beam.html_report.tables import largest_first

MOST_LINES = 8
"""The most sources of a chart."""

_CURVES = ("tokens_per_word", "bytes_per_token", "words_kept_whole", "renyi_efficiency")

_LENGTHS = 17
"""Tokens of this number of bytes and more are in one bar."""


# ---- figures by the size of the vocabulary ----


def size_curves(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[Variables]:
    """Yield a chart for each figure of the report's rows, and one of the sources of each row."""
    if not any(row["curve"] for row in rows):
        return
    by_row = [[*row["curve"], row["figures"]] for row in rows]  # the smallest size first
    sizes = {one["vocab_size"] for figures in by_row for one in figures}
    x = Axis("vocabulary", format=charts.short, log=True, values=sorted(sizes))
    for key in _CURVES:
        points = [
            (number, one["vocab_size"], one["total"].get(key), names[number])
            for number, figures in enumerate(by_row)
            for one in figures
        ]
        yield _curve(FIGURES[key][0], x, key, points)
    key = "bytes_per_token"
    for figures, name in zip(by_row, names, strict=True):
        whole = figures[-1]
        if len(figures) == 1 or not whole["sources"]:
            continue
        sources = largest_first({name: one["bytes"] for name, one in whole["sources"].items()})
        shown = sources[:MOST_LINES]
        points = [
            (series, one["vocab_size"], one["sources"][source].get(key), visible(source))
            for series, source in enumerate(shown)
            for one in figures
        ]
        yield {
            **_curve(f"Bytes a token by source, {name}", x, key, points),
            "legend": [(colour_of(n), visible(source)) for n, source in enumerate(shown)],
            "note": "The largest sources." if len(sources) > len(shown) else "",
        }


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
        "svg": svg,
        "head": ["Name", "Vocabulary", title],
        "rows": [[name, f"{size:,}", as_text(key, value)] for _, size, value, name in known],
    }


# ---- figures of tokens ----


def vocabulary_charts(tokenizers: Sequence[Evaluated], names: Sequence[str]) -> Iterator[Variables]:
    """Yield the charts of the tokens of all tokenizers."""
    labels = [str(length) for length in range(1, _LENGTHS)] + [f"{_LENGTHS}+"]
    for title, weighted in (("Length of the tokens", False), ("Length as they occur", True)):
        shares = []
        for vocabulary, total in tokenizers:
            weights = total.tokens if weighted else np.ones(len(vocabulary), np.int64)
            heights = np.zeros(_LENGTHS + 1, np.int64)
            np.add.at(heights, np.minimum(vocabulary.sizes, _LENGTHS), weights)
            shares.append((heights[1:] / max(int(weights.sum()), 1)).tolist())
        note = "Share of all occurrences." if weighted else "Share of the vocabulary."
        yield _histogram(title, note, "bytes", names, labels, shares, percent=True)
    yield _frequency_chart(tokenizers, names)
    yield _rank_chart(tokenizers, names)


def _frequency_chart(tokenizers: Sequence[Evaluated], names: Sequence[str]) -> Variables:
    greatest = max((int(one.total.tokens.max(initial=0)) for one in tokenizers), default=0)
    decades = len(str(greatest))
    powers = [
        f"{10 ** (n % 3)}{('', 'k', 'M', 'G', 'T', 'P', 'E')[n // 3]}" for n in range(decades)
    ]
    labels = ["0", *(f"{power}+" for power in powers)]
    # Exact, which a logarithm is not.
    edges = np.array([0, *(10**n for n in range(min(decades, 19)))], np.int64)
    numbers = []
    for one in tokenizers:
        at = np.searchsorted(edges, one.total.tokens, side="right") - 1
        numbers.append(np.bincount(at, minlength=len(labels)).tolist())
    title, note = "How often tokens occur", "Number of tokens, with added ones."
    return _histogram(title, note, "occurrences", names, labels, numbers)


def _histogram(
    title: str,
    note: str,
    axis: str,
    names: Sequence[str],
    labels: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    percent: bool = False,
) -> Variables:
    """Return a histogram of `values`, by tokenizer and bar."""
    texts = [[f"{100 * v:.1f} %" if percent else f"{v:,}" for v in row] for row in values]
    points = [
        Point(number, label, row[at], f"{names[number]}, {label} {axis}\n{texts[number][at]}")
        for at, label in enumerate(labels)
        for number, row in enumerate(values)
    ]
    y = Axis("", format=charts.percent if percent else charts.short, zero=True)
    return {
        "title": title,
        "note": note,
        "svg": charts.bars(points, Axis(axis), y),
        "head": [axis, *names],
        "rows": [*zip(labels, *texts, strict=True)],
    }


def _rank_chart(tokenizers: Sequence[Evaluated], names: Sequence[str]) -> Variables:
    points, rows = [], []
    for number, one in enumerate(tokenizers):
        counts = np.sort(one.total.tokens[one.total.tokens > 0])[::-1]
        for rank in _ranks(len(counts)):
            count = int(counts[rank - 1])
            label = f"{names[number]}, rank {rank:,}\n{count:,} occurrences"
            points.append(Point(number, rank, count, label))
            rows.append([names[number], f"{rank:,}", f"{count:,}"])
    powers = [10.0**n for n in range(20)]
    x = Axis("rank", format=charts.short, log=True, values=powers)
    return {
        "title": "Occurrences by rank",
        "note": "A straight line is Zipf's law; a steep end has tokens that hardly occur.",
        "svg": charts.lines(points, x, x._replace(title=""), dots=False),
        "head": ["Name", "Rank", "Occurrences"],
        "rows": rows,
    }


def _ranks(size: int) -> list[int]:
    """Return some forty ranks from 1 to the last, evenly on a scale of logarithms."""
    steps = 40
    return sorted({round(size ** (n / steps)) for n in range(steps + 1)}) if size else []

"""Charts of lines and bars as SVG, drawn when the page is made; and the charts of a report.

Colours are CSS variables of the page, which has a light and a dark set.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

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

WIDTH, HEIGHT = 330, 190
"""The size of the plot without its axes, in pixels: legible on a telephone."""

_LEFT, _TOP, _RIGHT, _BOTTOM = 46, 10, 14, 44
_CHARACTER = 6.7
"""The width of a digit of a label, in pixels."""

_INSET = 5
"""The pixels between the frame and the outermost points."""

_MARKS = (
    "M{x} {y}m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",  # circle
    "M{x} {y}m-4-4h8v8h-8z",  # square
    "M{x} {y}m0-5l5 9h-10z",  # triangle
    "M{x} {y}m0-5.5l5 5.5l-5 5.5l-5-5.5z",  # diamond
    "M{x} {y}m0 5l5-9h-10z",  # triangle, upside down
    "M{x} {y}m-2-5h4v3h3v4h-3v3h-4v-3h-3v-4h3z",  # cross
)
_DOT = "M{x} {y}m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0"


class Point(NamedTuple):
    """A point of a series, from 0, with its label; `x` is a number, or the name of a bar."""

    series: int
    x: float | str
    y: float
    label: str


def number(value: float) -> str:
    """Return a number of at most four digits for an axis: 0.25, 1,500."""
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def short(value: float) -> str:
    """Return a number of at most three digits for an axis: 250, 1.5k, 32M."""
    value = float(f"{value:.3g}")
    if abs(value) < 1000:
        return f"{value:.3g}"
    power = min(int(math.log10(abs(value)) + 1e-9) // 3, 6)
    return f"{value / 1000**power:.3g}{'kMGTPE'[power - 1]}"


def percent(value: float) -> str:
    """Return a share for an axis: 25%, 0.5%."""
    return f"{100 * value:.3g}%"


class Axis(NamedTuple):
    """An axis with labels at `values`, or at round numbers. `log`: only positive ones."""

    title: str
    format: Callable[[float], str] = number
    log: bool = False
    values: Sequence[float] | None = None
    zero: bool = False


def lines(points: Sequence[Point], x: Axis, y: Axis, *, dots: bool = True) -> str:
    """Return lines through points, a line for each series, as SVG."""
    across = _Scale(x, [float(point.x) for point in points], _INSET, WIDTH - _INSET)
    up = _Scale(y, [point.y for point in points], HEIGHT, 0)
    places: dict[int, list[tuple[str, str]]] = {}
    marks = []
    for point in sorted(points, key=lambda point: (point.series, point.x)):
        place = _pixels(across(float(point.x))), _pixels(up(point.y))
        places.setdefault(point.series, []).append(place)
        mark = _MARKS[point.series % len(_MARKS)] if dots else _DOT
        marks.append(_mark(point, mark.format(x=place[0], y=place[1])))
    paths = [
        f'<path fill="none" stroke="{_colour(series)}" stroke-width="2" '
        f'd="M{"L".join(map(" ".join, line))}"/>'
        for series, line in places.items()
    ]
    return _svg([*up.grid(), *_labels_below(across.ticks(), x), *paths, *marks], y)


def bars(points: Sequence[Point], x: Axis, y: Axis) -> str:
    """Return bars, side by side for the series, as SVG."""
    up = _Scale(y, [point.y for point in points], HEIGHT, 0)
    names = list(dict.fromkeys(str(point.x) for point in points))
    series = sorted({point.series for point in points})
    band = WIDTH / max(len(names), 1)
    width = 0.85 * band / max(len(series), 1)
    left = {name: (at + 0.075) * band for at, name in enumerate(names)}
    marks = []
    for point in points:
        start = _pixels(left[str(point.x)] + series.index(point.series) * width)
        height = HEIGHT - up(point.y)
        marks.append(_mark(point, f"M{start} {HEIGHT}h{_pixels(width)}v{_pixels(-height)}"
                           f"h{_pixels(-width)}z"))  # fmt: skip
    labels = {(at + 0.5) * band: visible(name) for at, name in enumerate(names)}
    return _svg([*up.grid(), *_labels_below(labels, x), *marks], y)


class _Scale:
    """The positions of numbers along an axis."""

    def __init__(self, axis: Axis, values: Sequence[float], start: float, end: float) -> None:
        self._axis, self._start, self._end = axis, start, end
        low, high = min(values, default=0.0), max(values, default=1.0)
        if axis.zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            around = abs(high) / 2 or 1.0
            low, high = (low / 2, high * 2) if axis.log else (low - around, high + around)
        self._ticks: list[float] = []
        if axis.values is not None:
            self._ticks = [value for value in axis.values if low <= value <= high]
        elif not axis.log:
            step = _round_step((high - low) / 5)
            first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
            low, high = first * step, last * step
            self._ticks = [at * step for at in range(first, last + 1)]
        self._low, self._high = self._place(low), self._place(high)

    def _place(self, value: float) -> float:
        return math.log(value) if self._axis.log else value

    def __call__(self, value: float) -> float:
        share = (self._place(value) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> Mapping[float, str]:
        """Return the labels of the axis by their positions."""
        return {self(value): self._axis.format(value) for value in self._ticks}

    def grid(self) -> Iterable[str]:
        """Yield the horizontal lines of a y-axis with their labels, some of them if too close."""
        last = math.inf
        for at, label in self.ticks().items():
            if last - at < 14:
                continue
            last = at
            yield f'<path stroke="var(--line)" d="M0 {_pixels(at)}h{WIDTH}"/>'
            yield _text(label, -7, at + 4, "end")


def _round_step(step: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not below a number."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= step * (1 - 1e-9))


def _labels_below(labels: Mapping[float, str], axis: Axis) -> Iterable[str]:
    """Yield the labels of an x-axis, without those that would overlap, and its title."""
    free = -math.inf
    for at, label in labels.items():
        half = len(label) * _CHARACTER / 2
        if at - half >= free:
            yield f'<path stroke="var(--line)" d="M{_pixels(at)} {HEIGHT}v5"/>'
            yield _text(label, at, HEIGHT + 18, "middle")
            free = at + half + 5
    yield _text(axis.title, WIDTH / 2, HEIGHT + 38, "middle")


def _colour(series: int) -> str:
    return f"var(--s{colour_of(series)})"


def _mark(point: Point, path: str) -> str:
    label = html.escape(visible(point.label))
    return (
        f'<path role="graphics-symbol" aria-label="{label}" fill="{_colour(point.series)}" '
        f'd="{path}"/>'
    )


def _text(text: str, x: float, y: float, anchor: str) -> str:
    return (
        f'<text x="{_pixels(x)}" y="{_pixels(y)}" text-anchor="{anchor}">{html.escape(text)}</text>'
    )


def _pixels(value: float) -> str:
    return f"{round(value, 2) + 0.0:g}"


def _svg(parts: Iterable[str], y: Axis) -> str:
    """Return a chart as part of a page, which has one description of it and its figures."""
    box = f"{-_LEFT} {-_TOP} {_LEFT + WIDTH + _RIGHT} {_TOP + HEIGHT + _BOTTOM}"
    frame = f'<path stroke="var(--line)" d="M0 {HEIGHT}h{WIDTH}"/>'
    title = [_text(y.title, -_LEFT, 0, "start")] if y.title else []
    return (
        f'<svg aria-hidden="true" viewBox="{box}" font-size="12" stroke-linejoin="round">'
        f'<g fill="var(--muted)">{frame}{"".join((*title, *parts))}</g></svg>'
    )


# ---- the charts of a report ----

MOST_LINES = 8
"""The most sources of a chart."""

_CURVES = ("tokens_per_word", "bytes_per_token", "words_kept_whole", "renyi_efficiency")

_LENGTHS = 17
"""Tokens of this number of bytes and more are in one bar."""


def size_curves(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[Variables]:
    """Yield a chart for each figure of the report's rows, and one of the sources of each row."""
    if not any(row["curve"] for row in rows):
        return
    by_row = [[*row["curve"], row["figures"]] for row in rows]  # the smallest size first
    sizes = {one["vocab_size"] for figures in by_row for one in figures}
    x = Axis("vocabulary", format=short, log=True, values=sorted(sizes))
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
    svg = lines(
        [
            Point(n, size, value, f"{name}, {size:,} tokens\n{as_text(key, value)}")
            for n, size, value, name in known
        ],
        x,
        Axis("", format=percent if key in SHARES else number),
    )
    return {
        "title": title,
        "note": "",
        "svg": svg,
        "head": ["Name", "Vocabulary", title],
        "rows": [[name, f"{size:,}", as_text(key, value)] for _, size, value, name in known],
    }


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
        yield _histogram(title, note, "bytes", names, labels, shares, shares=True)
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
    shares: bool = False,
) -> Variables:
    """Return a histogram of `values`, by tokenizer and bar."""
    texts = [[f"{100 * v:.1f} %" if shares else f"{v:,}" for v in row] for row in values]
    points = [
        Point(number, label, row[at], f"{names[number]}, {label} {axis}\n{texts[number][at]}")
        for at, label in enumerate(labels)
        for number, row in enumerate(values)
    ]
    y = Axis("", format=percent if shares else short, zero=True)
    return {
        "title": title,
        "note": note,
        "svg": bars(points, Axis(axis), y),
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
    x = Axis("rank", format=short, log=True, values=[10.0**n for n in range(20)])
    return {
        "title": "Occurrences by rank",
        "note": "A straight line is Zipf's law; a steep end has tokens that hardly occur.",
        "svg": lines(points, x, x._replace(title=""), dots=False),
        "head": ["Name", "Rank", "Occurrences"],
        "rows": rows,
    }


def _ranks(size: int) -> list[int]:
    """Return some forty ranks from 1 to the last, evenly on a scale of logarithms."""
    steps = 40
    return sorted({round(size ** (n / steps)) for n in range(steps + 1)}) if size else []

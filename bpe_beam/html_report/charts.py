"""Charts of lines and bars as SVG, drawn when the page is made.

Colours are CSS variables of the page, which has a light and a dark set.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from bpe_beam.html_report.figures import colour_of, visible

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

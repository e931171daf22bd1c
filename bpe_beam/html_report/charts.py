"""Charts as SVG: Vega-Lite draws them when the page is made, so that it needs no library.

Colours are CSS variables of the page, which has a light and a dark set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bpe_beam.errors import UsageError
from bpe_beam.html_report.visible import visible

WIDTH, HEIGHT = 330, 190
"""The size of the plot without its axes, in pixels: legible on a telephone."""

COLOURS = 8
"""The colours of series; further series begin again."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")

_PLACES = re.compile(r' (?:transform|d)="[^"]*"')
_LONG = re.compile(r"\d+\.\d{3,}")

_FONT = "Liberation Sans"  # vl-convert has it, so that all machines place labels equally


class Point(NamedTuple):
    """A point of a chart.

    Attributes:
        series: The number of its series, from 0.
        x: Its position on the x-axis: a number, or the name of a bar.
        y: Its value.
        label: What is shown of it.
    """

    series: int
    x: float | str
    y: float
    label: str


class Axis(NamedTuple):
    """An axis.

    Attributes:
        title: Its title.
        format: How numbers are shown, in d3's notation.
        log: The base of its logarithm; None: it is linear.
        values: The positions of its labels; None: they are chosen.
        zero: Whether it begins at 0.
    """

    title: str
    format: str = ",~g"
    log: int | None = None
    values: Sequence[float] | None = None
    zero: bool = False


def lines(points: Sequence[Point], x: Axis, y: Axis, *, dots: bool = True) -> str:
    """Return lines through points, a line for each series, as SVG.

    Args:
        points: The points.
        x: The x-axis.
        y: The y-axis.
        dots: Whether points have marks of the series' shape; otherwise they are small.
    """
    line = {"mark": {"type": "line", "strokeWidth": 2, "aria": False}}
    encoding: dict[str, Any] = {"description": {"field": "label"}}
    mark: dict[str, Any] = {"type": "point", "filled": True, "opacity": 1, "size": 14}
    if dots:
        mark["size"] = 70
        encoding["shape"] = _by_series(points, SHAPES)
    return _svg(points, x, y, [line, {"mark": mark, "encoding": encoding}])


def bars(points: Sequence[Point], x: Axis, y: Axis) -> str:
    """Return bars, side by side for the series, as SVG.

    Args:
        points: The bars, in the order of the x-axis.
        x: The x-axis.
        y: The y-axis.
    """
    mark = {"type": "bar"}  # rounded corners would need ids, which differ from chart to chart
    encoding = {
        "xOffset": {"field": "series", "type": "nominal"},
        "description": {"field": "label"},
    }
    return _svg(points, x, y, [{"mark": mark, "encoding": encoding}])


def _svg(points: Sequence[Point], x: Axis, y: Axis, layers: list[dict[str, Any]]) -> str:
    ordinal = bool(points) and isinstance(points[0].x, str)
    spec = {
        "width": WIDTH,
        "height": HEIGHT,
        "background": None,
        "padding": 4,
        "data": {"values": [_value(point) for point in points]},
        "encoding": {
            "x": {"field": "x", "sort": None, **_axis(x, ordinal)},
            "y": {"field": "y", **_axis(y, False)},
            "color": _by_series(points, [f"var(--s{n + 1})" for n in range(COLOURS)]),
        },
        "layer": layers,
        "config": _CONFIG,
    }
    return _drawn(json.dumps(spec))


def _value(point: Point) -> Mapping[str, Any]:
    x = visible(point.x) if isinstance(point.x, str) else point.x
    return {"series": str(point.series), "x": x, "y": point.y, "label": visible(point.label)}


def _by_series(points: Sequence[Point], values: Sequence[str]) -> dict[str, Any]:
    """Return an encoding that gives each series one of the values."""
    series = sorted({point.series for point in points})
    scale = {
        "domain": [str(number) for number in series],
        "range": [values[number % len(values)] for number in series],
    }
    return {"field": "series", "type": "nominal", "legend": None, "scale": scale}


def _axis(axis: Axis, ordinal: bool) -> dict[str, Any]:
    looks: dict[str, Any] = {"title": axis.title}
    if ordinal:
        return {
            "type": "ordinal",
            "axis": {**looks, "labelAngle": 0, "labelOverlap": True, "labelSeparation": 3},
        }
    looks |= {"format": axis.format, "labelOverlap": True, "tickCount": 5}
    if axis.values is not None:
        looks["values"] = list(axis.values)
    scale: dict[str, Any] = {"zero": axis.zero}
    if axis.log is not None:
        scale = {"type": "log", "base": axis.log, "nice": False}
    return {"type": "quantitative", "axis": looks, "scale": scale}


_CONFIG = {
    "font": _FONT,
    "view": {"stroke": None},
    "bar": {"discreteBandSize": {"band": 0.85}},
    "axis": {
        "aria": False,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "gridColor": "var(--line)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
    },
}


def _drawn(spec: str) -> str:
    """Return the SVG of a chart, as part of an HTML page."""
    convert = library()
    svg: str = convert.vegalite_to_svg(spec)
    # The page has one description for the whole chart, and its figures as a table.
    svg = re.sub(r'^<svg [^>]*?(viewBox="[^"]*")>', r'<svg aria-hidden="true" \1>', svg)
    svg = re.sub(r' (?:aria-roledescription|font-family|pointer-events)="[^"]*"', "", svg)
    return _PLACES.sub(lambda place: _LONG.sub(lambda x: f"{float(x[0]):.2f}", place[0]), svg)


def library() -> Any:
    """Return the package that draws charts.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import jinja2  # noqa: F401
        import vl_convert
    except ImportError as error:
        raise UsageError(
            f"a report in HTML needs packages that are not installed ({error.name}): "
            "pip install 'bpe-beam[report]'"
        ) from None
    return vl_convert

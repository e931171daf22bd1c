"""Charts as SVG."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bpe_beam.html_report import charts
from bpe_beam.html_report.charts import Axis, Point


def marks(svg: str) -> dict[str, dict[str, str]]:
    """Return the attributes of each mark by its label."""
    elements = ElementTree.fromstring(svg).iter()
    return {e.attrib["aria-label"]: e.attrib for e in elements if "aria-label" in e.attrib}


def test_points_have_labels_and_the_colour_of_their_series() -> None:
    points = [Point(0, 1000, 0.5, "one"), Point(9, 2000, 0.75, 'two "</svg>" & \u202e')]
    x, y = Axis("x", log=True, values=[1000, 2000]), Axis("", format=charts.percent)
    svg = charts.lines(points, x, y)
    colours = {label: mark["fill"] for label, mark in marks(svg).items()}
    assert colours == {"one": "var(--s1)", 'two "</svg>" & <U+202E>': "var(--s2)"}
    assert charts.lines(points, x, y) == svg
    assert "http" not in svg


def test_points_and_labels_lie_on_the_scale() -> None:
    points = [Point(0, 10.0**n, value, str(n)) for n, value in enumerate((0.5, 0.6, 0.75))]
    x = Axis("rank", format=charts.short, log=True, values=[1, 10, 100])
    svg = charts.lines(points, x, Axis("", format=charts.percent))
    starts = [mark["d"].split("m")[0] for mark in marks(svg).values()]
    assert starts == ["M5 190", "M165 114", "M325 0"]
    texts = [
        (e.text, e.attrib["x"], e.attrib["y"]) for e in ElementTree.fromstring(svg).iter("text")
    ]
    assert [text for text, x, _ in texts if x == "-7"] == ["50%", "55%", "60%", "65%", "70%", "75%"]
    assert texts[-4:] == [("1", "5", "208"), ("10", "165", "208"), ("100", "325", "208"),
                          ("rank", "165", "228")]  # fmt: skip


def test_bars_have_labels_and_lengths_of_their_values() -> None:
    points = [Point(n, name, n + 1.0, f"{name}{n}") for name in ("b", "a<") for n in (0, 1)]
    svg = charts.bars(points, Axis("x"), Axis("", zero=True))
    heights = {label: mark["d"].split("v")[1].split("h")[0] for label, mark in marks(svg).items()}
    assert heights == {"b0": "-95", "b1": "-190", "a<0": "-95", "a<1": "-190"}
    texts = [e.text for e in ElementTree.fromstring(svg).iter("text")]
    assert texts.index("b") < texts.index("a<")  # in the order of the arguments


@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 1e18])
def test_one_value_alone_is_drawn(value: float) -> None:
    assert "nan" not in charts.lines([Point(0, 1, value, "")], Axis("x"), Axis(""))
    assert "nan" not in charts.bars([Point(0, "a", value, "")], Axis("x"), Axis("", zero=True))
    assert "<text" in charts.bars([], Axis("x"), Axis("", zero=True))


def test_labels_that_would_overlap_are_left_out() -> None:
    points = [Point(0, f"name{n}", 1.0, "") for n in range(40)]
    svg = charts.bars(points, Axis("x"), Axis("", zero=True))
    names = [e.text for e in ElementTree.fromstring(svg).iter("text") if e.text]
    assert 3 < sum(name.startswith("name") for name in names) < 12


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (250, "250"), (1000, "1k"), (32768, "32.8k"), (999_999, "1M"), (2e18, "2E")],
)
def test_short_numbers(value: float, text: str) -> None:
    assert charts.short(value) == text

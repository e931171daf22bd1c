"""Charts as SVG."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import pytest

from bpe_beam.errors import UsageError
from bpe_beam.html_report import charts
from bpe_beam.html_report.charts import Axis, Point


def marks(svg: str) -> dict[str, str]:
    """Return the colour of each mark by its label."""
    found = ElementTree.fromstring(svg).iter()
    return {e.attrib["aria-label"]: e.attrib["fill"] for e in found if "fill" in e.attrib and
            "aria-label" in e.attrib}  # fmt: skip


def test_points_have_labels_and_the_colour_of_their_series() -> None:
    points = [Point(0, 1000, 0.5, "one"), Point(9, 2000, 0.75, 'two "</svg>" & \u202e')]
    svg = charts.lines(points, Axis("x", log=2), Axis("", format=".0%"))
    expected = {"one": "var(--s1)", 'two "</svg>" & <U+202E>': "var(--s2)"}
    assert marks(svg) == expected
    assert charts.lines(points, Axis("x", log=2), Axis("", format=".0%")) == svg
    assert "http" not in svg


def test_bars_have_labels() -> None:
    points = [Point(n, name, n + 1.0, f"{name}{n}") for name in ("b", "a<") for n in (0, 1)]
    svg = charts.bars(points, Axis("x"), Axis("", zero=True))
    assert marks(svg).keys() == {"b0", "b1", "a<0", "a<1"}
    texts = [e.text for e in ElementTree.fromstring(svg).iter("text")]
    assert texts.index("b") < texts.index("a<")  # in the order of the arguments


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match=r"pip install 'bpe-beam\[report\]'"):
        charts.library()

"""What vocabularies cost, as a report's page shows it."""

from __future__ import annotations

from typing import Any

import pytest

from bpe_beam.html_report.costs import COST_HEADINGS, columns, cost_rows

pytestmark = pytest.mark.quick


def figures(vocab_size: int, tokens: int) -> dict[str, Any]:
    return {"vocab_size": vocab_size, "total": {"tokens": tokens}}


def test_each_size_has_a_row() -> None:
    rows = [
        {"exact": True, "curve": [figures(1000, 400)], "figures": figures(2000, 300)},
        {"exact": False, "curve": [], "figures": figures(100_000, 330)},
    ]
    found = columns(rows, ["a", "b"], [70_000, 100_000])
    assert [one.label for one in found] == ["a at 1,000", "a at 2,000", "b (not exact)"]
    assert [one.number for one in found] == [0, 0, 1]
    assert cost_rows(found) == [
        ["a", "1,000", "400", "", "1.0 M", "2", "800 B"],
        # Its greatest id needs more than two bytes, though it has few tokens.
        ["a", "2,000", "300", "-25.0 %", "2.0 M", "4", "1.2 kB"],
        ["b (not exact)", "100,000", "330", "+10.0 %", "102.4 M", "4", "1.32 kB"],
    ]
    assert len(COST_HEADINGS) == 7


@pytest.mark.parametrize(("id_space", "width"), [(65_536, "2"), (65_537, "4")])
def test_bytes_of_an_id(id_space: int, width: str) -> None:
    rows = [{"exact": True, "curve": [], "figures": figures(10, 0)}]
    ((*_, shown, size),) = cost_rows(columns(rows, ["a"], [id_space]))
    assert (shown, size) == (width, "0 B")

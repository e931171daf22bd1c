"""The tables of a report: what vocabularies cost, and the tokens of each source."""

from __future__ import annotations

from typing import Any

import pytest

from bpe_beam.html_report.figures import NOTHING
from bpe_beam.html_report.tables import (
    COST_HEADINGS,
    cost_rows,
    shown_vocabularies,
    source_rows,
    source_sizes,
)

pytestmark = pytest.mark.quick


def figures(vocab_size: int, tokens: int, text_bytes: int = 1000, **sources: int) -> dict[str, Any]:
    return {
        "vocab_size": vocab_size,
        "total": {"tokens": tokens, "bytes": text_bytes},
        "sources": {name: {"tokens": n, "bytes": 500} for name, n in sources.items()} or None,
    }


def tokenizer(*sizes: dict[str, Any], exact: bool = True) -> dict[str, Any]:
    return {"exact": exact, "curve": [*sizes[:-1]], "figures": sizes[-1]}


def by_heading(rows: list[dict[str, Any]], *id_spaces: int) -> list[dict[str, str]]:
    names = [f"tok{number}" for number in range(len(rows))]
    shown = shown_vocabularies(rows, names, id_spaces)
    return [dict(zip(COST_HEADINGS, cells, strict=True)) for cells in cost_rows(shown)]


def test_each_size_has_a_row() -> None:
    found = by_heading(
        [tokenizer(figures(1000, 400), figures(2000, 300)), tokenizer(figures(70_000, 330))],
        70_000,
        100_000,
    )
    assert found == [
        {
            "Tokenizer": "tok0",
            "Vocabulary": "1,000",
            "Tokens of the corpus": "400",
            "Against the row above": "",
            "Embedding of width 1,024, parameters": "1.0 M",
            "Bytes of an id": "2",
            "Bytes of all ids": "800 B",
        },
        {
            # Its greatest id needs more than two bytes, and as many rows, though it has few tokens.
            "Tokenizer": "tok0",
            "Vocabulary": "2,000",
            "Tokens of the corpus": "300",
            "Against the row above": "-25.0 %",
            "Embedding of width 1,024, parameters": "71.7 M",
            "Bytes of an id": "4",
            "Bytes of all ids": "1.2 kB",
        },
        {
            "Tokenizer": "tok1",
            "Vocabulary": "70,000",
            "Tokens of the corpus": "330",
            "Against the row above": "",  # the sizes of two tokenizers follow one another
            "Embedding of width 1,024, parameters": "102.4 M",
            "Bytes of an id": "4",
            "Bytes of all ids": "1.32 kB",
        },
    ]


@pytest.mark.parametrize(
    ("second", "change"),
    [
        (tokenizer(figures(10, 110)), "+10.0 %"),
        (tokenizer(figures(10, 110), exact=False), ""),
        (tokenizer(figures(10, 110, text_bytes=999)), ""),
    ],
)
def test_only_what_can_be_compared_is(second: dict[str, Any], change: str) -> None:
    _, row = by_heading([tokenizer(figures(10, 100)), second], 10, 10)
    assert row["Against the row above"] == change
    assert row["Tokenizer"] == ("tok1" if second["exact"] else "tok1 (not exact)")


@pytest.mark.parametrize(("id_space", "width"), [(65_536, "2"), (65_537, "4")])
def test_bytes_of_an_id(id_space: int, width: str) -> None:
    (row,) = by_heading([tokenizer(figures(10, 0))], id_space)
    assert (row["Bytes of an id"], row["Bytes of all ids"]) == (width, "0 B")


def test_tokens_of_each_source() -> None:
    rows = [
        tokenizer(figures(10, 0, de=200, en=100), figures(20, 0, de=150, en=99)),
        tokenizer(figures(30, 0, en=50, zh=70)),
    ]
    shown = shown_vocabularies(rows, ["a", "b"], [20, 30])
    assert [one.label for one in shown] == ["a at 10", "a at 20", "b"]
    assert source_sizes(shown) == {"de": 500, "en": 500, "zh": 500}
    assert source_rows(shown, ["de", "en", "zh"]) == [
        ["de", "200", "150 (-25.0 %)", NOTHING],
        ["en", "100", "99 (-1.0 %)", "50"],
        ["zh", NOTHING, NOTHING, "70"],
    ]
    assert source_sizes(shown_vocabularies([tokenizer(figures(1, 1))], ["a"], [1])) == {}

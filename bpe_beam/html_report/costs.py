"""What vocabularies cost: tokens of the corpus, rows of a model's embedding, bytes of ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bpe_beam.messages import format_bytes

WIDTH = 1024
"""The width of the embedding whose parameters are shown."""

_TWO_BYTES = 1 << 16
"""The most ids that have two bytes each."""


class Column(NamedTuple):
    """A vocabulary of the report: that of a tokenizer, or of its first merges.

    Attributes:
        number: The number of the tokenizer.
        label: The name, with the size where the tokenizer has several.
        name: The name of the tokenizer; it says if the figures are not exact.
        figures: The figures, as JSON values.
        id_space: One more than the greatest id.
    """

    number: int
    label: str
    name: str
    figures: Mapping[str, Any]
    id_space: int


def columns(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], id_spaces: Sequence[int]
) -> list[Column]:
    """Return the vocabularies of a report, those of a tokenizer by size.

    Args:
        rows: The tokenizers of the report, as JSON values.
        names: Their names as the page shows them.
        id_spaces: Of each, one more than its greatest id.
    """
    found = []
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        shown = name if row["exact"] else f"{name} (not exact)"
        for figures in (*row["curve"], row["figures"]):
            size = figures["vocab_size"]
            label = f"{shown} at {size:,}" if row["curve"] else shown
            space = id_spaces[number] if figures is row["figures"] else size
            found.append(Column(number, label, shown, figures, space))
    return found


def cost_rows(of: Sequence[Column]) -> list[list[str]]:
    """Return a row of cells for each vocabulary, under COST_HEADINGS.

    Args:
        of: The vocabularies.
    """
    rows = []
    before: int | None = None
    for column in of:
        tokens = column.figures["total"]["tokens"]
        width = 2 if column.id_space <= _TWO_BYTES else 4
        rows.append(
            [
                column.name,
                f"{column.figures['vocab_size']:,}",
                f"{tokens:,}",
                f"{100 * (tokens / before - 1):+.1f} %" if before else "",
                f"{column.figures['vocab_size'] * WIDTH / 1e6:,.1f} M",
                f"{width}",
                format_bytes(width * tokens),
            ]
        )
        before = tokens
    return rows


COST_HEADINGS = (
    "Tokenizer",
    "Vocabulary",
    "Tokens of the corpus",
    "Against the row above",
    f"Embedding of width {WIDTH:,}, parameters",
    "Bytes of an id",
    "Bytes of all ids",
)

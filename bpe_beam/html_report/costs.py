"""What vocabularies cost: tokens of the corpus, rows of a model's embedding, bytes of ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bpe_beam.messages import format_bytes

WIDTH = 1024
"""The width of the embedding whose parameters are shown first; the page has a field for it."""

MOST_IDS_OF_TWO_BYTES = 1 << 16

EMBEDDING = f"Embedding of width {WIDTH:,}, parameters"
"""The heading of the column that depends on the width."""

COST_HEADINGS = (
    "Tokenizer",
    "Vocabulary",
    "Tokens of the corpus",
    "Against the row above",
    EMBEDDING,
    "Bytes of an id",
    "Bytes of all ids",
)


class ShownVocabulary(NamedTuple):
    """A vocabulary of the report: a tokenizer's, or its first merges.

    Attributes:
        number: The number of the tokenizer.
        label: The name, with the size where the tokenizer has several.
        name: The name of the tokenizer; it says if the figures are not exact.
        figures: The figures, as JSON values.
        id_space: One more than the greatest id.
        exact: Whether the tokens equal the corpus's.
        is_whole: Whether it is the tokenizer itself.
        has_sizes: Whether there are several sizes of the tokenizer.
    """

    number: int
    label: str
    name: str
    figures: Mapping[str, Any]
    id_space: int
    exact: bool
    is_whole: bool
    has_sizes: bool


def shown_vocabularies(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], id_spaces: Sequence[int]
) -> list[ShownVocabulary]:
    """Return the vocabularies of a report, a tokenizer's by size."""
    vocabularies = []
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        shown = name if row["exact"] else f"{name} (not exact)"
        for figures in (*row["curve"], row["figures"]):
            size = figures["vocab_size"]
            is_whole = figures is row["figures"]
            vocabularies.append(
                ShownVocabulary(
                    number,
                    f"{shown} at {size:,}" if row["curve"] else shown,
                    shown,
                    figures,
                    id_spaces[number] if is_whole else size,
                    row["exact"],
                    is_whole,
                    bool(row["curve"]),
                )
            )
    return vocabularies


def cost_rows(vocabularies: Sequence[ShownVocabulary]) -> list[list[str]]:
    """Return a row of cells for each vocabulary, under COST_HEADINGS."""
    rows = []
    before: ShownVocabulary | None = None
    for one in vocabularies:
        tokens = one.figures["total"]["tokens"]
        width = 2 if one.id_space <= MOST_IDS_OF_TWO_BYTES else 4
        rows.append(
            [
                one.name,
                f"{one.figures['vocab_size']:,}",
                f"{tokens:,}",
                _change(one, before, "total"),
                f"{one.id_space * WIDTH / 1e6:,.1f} M",
                f"{width}",
                format_bytes(width * tokens),
            ]
        )
        before = one
    return rows


def source_sizes(vocabularies: Sequence[ShownVocabulary]) -> dict[str, int]:
    """Return the bytes of each source."""
    sizes: dict[str, int] = {}
    for one in vocabularies:
        for name, figures in (one.figures["sources"] or {}).items():
            sizes[name] = max(figures["bytes"], sizes.get(name, 0))
    return sizes


def source_rows(
    vocabularies: Sequence[ShownVocabulary], names: Sequence[str], nothing: str
) -> list[list[str]]:
    """Return a row of cells for each source: its name, and its tokens by each vocabulary."""
    sources = [one.figures["sources"] or {} for one in vocabularies]
    rows = []
    for name in names:
        cells = [name]
        before: ShownVocabulary | None = None
        for one, own in zip(vocabularies, sources, strict=True):
            change = _change(one, before, name)
            more = f" ({change})" if change else ""
            cells.append(f"{own[name]['tokens']:,}{more}" if name in own else nothing)
            before = one
        rows.append(cells)
    return rows


def _change(one: ShownVocabulary, before: ShownVocabulary | None, of: str) -> str:
    """Return how many more tokens one has, in percent; empty where two cannot be compared."""
    if before is None or one.exact != before.exact:
        return ""
    if one.number != before.number and (one.has_sizes or before.has_sizes):
        return ""
    a, b = (_amounts(each.figures, of) for each in (before, one))
    if a is None or b is None or a["bytes"] != b["bytes"] or not a["tokens"]:
        return ""
    return f"{100 * (b['tokens'] / a['tokens'] - 1):+.1f} %"


def _amounts(figures: Mapping[str, Any], of: str) -> Mapping[str, Any] | None:
    if of == "total":
        total: Mapping[str, Any] = figures["total"]
        return total
    return (figures["sources"] or {}).get(of)

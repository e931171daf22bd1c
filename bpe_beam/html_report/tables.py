"""The tables of a report: costs of vocabularies, figures of sources, tokens by kind and script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bpe_beam.evaluation.metrics import RARE_BELOW
from bpe_beam.html_report.figures import (
    FIGURES,
    NOTHING,
    SHARES,
    Variables,
    as_text,
    bars,
    colour_of,
    visible,
)
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

_COST_FIGURES = (
    "bytes_per_token",
    "words_kept_whole",
    "vocabulary_used_share",
    "rare_vocabulary_share",
)

_BY_SOURCE = (
    "bytes_per_token",
    "tokens",
    "characters_per_token",
    "tokens_per_word",
    "words_kept_whole",
    "partial_character_tokens",
    "vocabulary_used_share",
    "renyi_efficiency",
)


class ShownVocabulary(NamedTuple):
    """A vocabulary of the report: a tokenizer's, or its first merges.

    The name says if the figures are not exact; `id_space` is one more than the greatest id.
    """

    number: int
    name: str
    report: Mapping[str, Any]
    figures: Mapping[str, Any]
    id_space: int

    @property
    def label(self) -> str:
        """The name, with the size where the tokenizer has several."""
        size = self.figures["vocab_size"]
        return f"{self.name} at {size:,}" if self.report["curve"] else self.name

    @property
    def sources(self) -> Mapping[str, Any]:
        """The figures of each source."""
        return self.figures["sources"] or {}


def shown_vocabularies(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], id_spaces: Sequence[int]
) -> list[ShownVocabulary]:
    """Return the vocabularies of a report, the sizes of each tokenizer in order."""
    vocabularies = []
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        shown = name if row["exact"] else f"{name} (not exact)"
        for size in row["curve"]:
            vocabularies.append(ShownVocabulary(number, shown, row, size, size["vocab_size"]))
        whole = row["figures"]
        vocabularies.append(ShownVocabulary(number, shown, row, whole, id_spaces[number]))
    return vocabularies


# ---- costs ----


def cost_tables(vocabularies: Sequence[ShownVocabulary], names: Sequence[str]) -> Variables:
    """Return the tables of the cost of each vocabulary, in total and by source."""
    figures = [
        [as_text(key, one.figures["total"].get(key)) for key in _COST_FIGURES]
        for one in vocabularies
    ]
    return {
        "head": [*COST_HEADINGS, *(FIGURES[key][0] for key in _COST_FIGURES)],
        "rows": [a + b for a, b in zip(cost_rows(vocabularies), figures, strict=True)],
        "source_rows": source_rows(vocabularies, names),
        "embedding": EMBEDDING,
        "width": WIDTH,
        "rare_below": RARE_BELOW,
    }


def cost_rows(vocabularies: Sequence[ShownVocabulary]) -> list[list[str]]:
    """Return a row of cells for each vocabulary, under COST_HEADINGS."""
    rows = []
    for before, one in _with_previous(vocabularies):
        tokens = one.figures["total"]["tokens"]
        width = 2 if one.id_space <= MOST_IDS_OF_TWO_BYTES else 4
        rows.append(
            [
                one.name,
                f"{one.figures['vocab_size']:,}",
                f"{tokens:,}",
                _change(before, one),
                f"{one.id_space * WIDTH / 1e6:,.1f} M",
                f"{width}",
                format_bytes(width * tokens),
            ]
        )
    return rows


def source_rows(vocabularies: Sequence[ShownVocabulary], names: Sequence[str]) -> list[list[str]]:
    """Return a row of cells for each source: its name, and its tokens by each vocabulary."""

    def cell(name: str, before: ShownVocabulary | None, one: ShownVocabulary) -> str:
        if name not in one.sources:
            return NOTHING
        change = _change(before, one, name)
        return f"{one.sources[name]['tokens']:,}{f' ({change})' if change else ''}"

    return [
        [visible(name), *(cell(name, *pair) for pair in _with_previous(vocabularies))]
        for name in names
    ]


def _with_previous(
    vocabularies: Sequence[ShownVocabulary],
) -> Iterator[tuple[ShownVocabulary | None, ShownVocabulary]]:
    """Yield each vocabulary after the one before it; the first after None."""
    return zip([None, *vocabularies], vocabularies, strict=False)


def _change(before: ShownVocabulary | None, one: ShownVocabulary, source: str | None = None) -> str:
    """Return how many more tokens one has, in percent; empty where two cannot be compared."""
    if before is None or one.report["exact"] != before.report["exact"]:
        return ""
    if one.number != before.number and (one.report["curve"] or before.report["curve"]):
        return ""
    a, b = (
        each.figures["total"] if source is None else each.sources.get(source)
        for each in (before, one)
    )
    if a is None or b is None or a["bytes"] != b["bytes"] or not a["tokens"]:
        return ""
    return f"{100 * (b['tokens'] / a['tokens'] - 1):+.1f} %"


# ---- sources ----


def source_sizes(vocabularies: Sequence[ShownVocabulary]) -> dict[str, int]:
    """Return the bytes of each source."""
    sizes: dict[str, int] = {}
    for one in vocabularies:
        for name, figures in one.sources.items():
            sizes[name] = max(figures["bytes"], sizes.get(name, 0))
    return sizes


def largest_first(sizes: Mapping[str, int]) -> list[str]:
    """Return the names of sources by size; equal sizes in the order of names."""
    return sorted(sizes, key=lambda name: (-sizes[name], name))


def largest(sizes: Mapping[str, int], limit: int) -> tuple[list[str], str]:
    """Return the names of the largest sources, sorted, and a note if there are more."""
    names = largest_first(sizes)[:limit]
    note = f"The {limit:,} largest of {len(sizes):,} sources; the JSON and the CSV have all."
    return sorted(names), note if len(names) < len(sizes) else ""


def source_table(
    vocabularies: Sequence[ShownVocabulary], names: Sequence[str]
) -> tuple[Variables | None, dict[str, Variables]]:
    """Return the table of sources, and the figures that it can show."""
    if not names:
        return None, {}
    figures: dict[str, Variables] = {}

    def add(key: str, title: str, by_vocabulary: Sequence[Sequence[float | None]]) -> None:
        if any(value is not None for column in by_vocabulary for value in column):
            figures[key] = {
                "title": title,
                "share": key in SHARES,
                "integer": key == "tokens",
                "values": [[_rounded(value) for value in column] for column in by_vocabulary],
            }

    for key in _BY_SOURCE:
        values = [[one.sources.get(name, {}).get(key) for name in names] for one in vocabularies]
        add(key, FIGURES[key][0], values)
    premiums = [one.figures.get("premiums") or {} for one in vocabularies]
    title = "Tokens over those of the chosen source"
    add("premiums", title, [[one.get(name) for name in names] for one in premiums])
    first = next(iter(figures))
    colours = [colour_of(one.number) for one in vocabularies]
    rows = []
    by_name = [*zip(*figures[first]["values"], strict=True)]
    cells_of_rows = bars(by_name, colours, lambda value: as_text(first, value))
    for name, cells in zip(names, cells_of_rows, strict=True):
        words = next(
            one.sources[name].get("words") or None for one in vocabularies if name in one.sources
        )
        rows.append(
            {
                "name": visible(name),
                "words": "" if words is None else words,
                "words_text": as_text("words", words),
                "cells": cells,
            }
        )
    titles = [(key, figure["title"]) for key, figure in figures.items()]
    return {"figures": titles, "rows": rows}, figures


def _rounded(value: float | None) -> float | None:
    """Return a figure with six digits, for the page's script."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def script_rows(rows: Sequence[Mapping[str, Any]]) -> list[Variables]:
    """Return the number of tokens of each script, by the rows of the report."""
    by_row = [row["tokens_by_script"] for row in rows]
    numbers = {name: [one.get(name, 0) for one in by_row] for one in by_row for name in one}
    names = sorted(numbers, key=lambda name: (-sum(numbers[name]), name))
    colours = [colour_of(number) for number in range(len(by_row))]
    cells = bars([numbers[name] for name in names], colours, lambda value: f"{value:,}")
    return [
        {"name": name.replace("_", " "), "cells": of_script}
        for name, of_script in zip(names, cells, strict=True)
    ]

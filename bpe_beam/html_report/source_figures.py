"""The figures of sources: a table with bars, and how equally a tokenizer treats the sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bpe_beam.html_report.costs import ShownVocabulary
from bpe_beam.html_report.figures import (
    FIGURES,
    SHARES,
    Variables,
    as_text,
    bars,
    colour_of,
    rounded,
)
from bpe_beam.html_report.visible import visible

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


def largest(sizes: Mapping[str, int], limit: int) -> tuple[list[str], str]:
    """Return the names of the largest sources, sorted, and a note if there are more."""
    names = largest_first(sizes)[:limit]
    note = f"The {limit:,} largest of {len(sizes):,} sources; the JSON and the CSV have all."
    return sorted(names), note if len(names) < len(sizes) else ""


def largest_first(sizes: Mapping[str, int]) -> list[str]:
    """Return the names of sources by size; equal sizes in the order of names."""
    return sorted(sizes, key=lambda name: (-sizes[name], name))


def source_table(
    vocabularies: Sequence[ShownVocabulary], names: Sequence[str], note: str
) -> tuple[Variables | None, dict[str, Variables]]:
    """Return the table of sources, and the figures that it can show."""
    if not names:
        return None, {}
    by_vocabulary = [one.figures["sources"] or {} for one in vocabularies]
    figures: dict[str, Variables] = {}
    for key in _BY_SOURCE:
        values = [[sources.get(name, {}).get(key) for name in names] for sources in by_vocabulary]
        if any(value is not None for column in values for value in column):
            figures[key] = {
                "title": FIGURES[key][0],
                "share": key in SHARES,
                "integer": key == "tokens",
                "values": [[rounded(value) for value in column] for column in values],
            }
    premiums = [one.figures.get("premiums") or {} for one in vocabularies]
    if any(premiums):
        figures["premiums"] = {
            "title": "Tokens over those of the chosen source",
            "share": False,
            "integer": False,
            "values": [[rounded(one.get(name)) for name in names] for one in premiums],
        }
    first = next(iter(figures))
    colours = [colour_of(one.number) for one in vocabularies]
    cells = bars(figures[first]["values"], colours, lambda value: as_text(first, value))
    words = [
        next(sources[name].get("words") or None for sources in by_vocabulary if name in sources)
        for name in names
    ]
    rows = [
        {
            "name": visible(name),
            "words": "" if words[at] is None else words[at],
            "words_text": as_text("words", words[at]),
            "cells": [column[at] for column in cells],
        }
        for at, name in enumerate(names)
    ]
    titles = [(key, figure["title"]) for key, figure in figures.items()]
    return {"figures": titles, "rows": rows, "note": note}, figures


def fairness_rows(vocabularies: Sequence[ShownVocabulary]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each vocabulary and kind of cost: how unequal the sources are."""
    for one in vocabularies:
        for cost, fair in (one.figures["fairness"] or {}).items():
            if fair is not None:
                yield (
                    one.label,
                    cost.replace("_", " "),
                    f"{fair['gini']:.3f}",
                    f"{fair['worst_to_best']:.2f}",
                    visible(fair["worst"]),
                    visible(fair["best"]),
                )

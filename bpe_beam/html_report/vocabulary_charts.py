"""Charts of a vocabulary: the lengths, the frequencies and the scripts of its tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bpe_beam.html_report import charts
from bpe_beam.html_report.charts import Axis, Point
from bpe_beam.html_report.evaluated import Evaluated
from bpe_beam.html_report.figures import NOTHING, Variables, bars, colour_of, markup

_LENGTHS = 17
"""Tokens of this number of bytes and more are in one bar."""


def vocabulary_charts(tokenizers: Sequence[Evaluated], names: Sequence[str]) -> Iterator[Variables]:
    """Yield the charts of the tokens of all tokenizers."""
    yield from _length_charts(tokenizers, names)
    yield _frequency_chart(tokenizers, names)
    yield _rank_chart(tokenizers, names)


def _length_charts(tokenizers: Sequence[Evaluated], names: Sequence[str]) -> Iterator[Variables]:
    lengths = [
        np.array([len(data) for data in one.vocabulary.token_bytes], np.int64) for one in tokenizers
    ]
    labels = [str(length) for length in range(1, _LENGTHS)] + [f"{_LENGTHS}+"]
    for title, weighted in (("Length of the tokens", False), ("Length as they occur", True)):
        shares = []
        for one, of_tokens in zip(tokenizers, lengths, strict=True):
            weights = one.total.tokens if weighted else np.ones(len(of_tokens), np.int64)
            heights = np.zeros(_LENGTHS + 1, np.int64)
            np.add.at(heights, np.minimum(of_tokens, _LENGTHS), weights)
            shares.append((heights[1:] / max(int(weights.sum()), 1)).tolist())
        note = "Share of all occurrences." if weighted else "Share of the vocabulary."
        yield _histogram(title, note, "bytes", names, labels, shares, percent=True)


def _frequency_chart(tokenizers: Sequence[Evaluated], names: Sequence[str]) -> Variables:
    greatest = max((int(one.total.tokens.max(initial=0)) for one in tokenizers), default=0)
    decades = len(str(greatest))
    labels = ["0", *(_decade(number) for number in range(decades))]
    # Exact, which a logarithm is not.
    edges = np.array([0, *(10**n for n in range(min(decades, 19)))], np.int64)
    numbers = []
    for one in tokenizers:
        at = np.searchsorted(edges, one.total.tokens, side="right") - 1
        numbers.append(np.bincount(at, minlength=len(labels)).tolist())
    title, note = "How often tokens occur", "Number of tokens, with added ones."
    return _histogram(title, note, "occurrences", names, labels, numbers)


def _histogram(
    title: str,
    note: str,
    axis: str,
    names: Sequence[str],
    labels: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    percent: bool = False,
) -> Variables:
    """Return a histogram of `values`, by tokenizer and bar."""

    def shown(value: float) -> str:
        return f"{100 * value:.1f} %" if percent else f"{value:,}"

    points = [
        Point(number, label, row[at], f"{names[number]}, {label} {axis}\n{shown(row[at])}")
        for at, label in enumerate(labels)
        for number, row in enumerate(values)
    ]
    y = Axis("", format=charts.percent if percent else charts.short, zero=True)
    return {
        "title": title,
        "note": note,
        "svg": markup(charts.bars(points, Axis(axis), y)),
        "head": [axis, *names],
        "rows": [[label, *(shown(row[at]) for row in values)] for at, label in enumerate(labels)],
    }


def _rank_chart(tokenizers: Sequence[Evaluated], names: Sequence[str]) -> Variables:
    points, rows = [], []
    for number, one in enumerate(tokenizers):
        counts = np.sort(one.total.tokens[one.total.tokens > 0])[::-1]
        for rank in _ranks(len(counts)):
            count = int(counts[rank - 1])
            label = f"{names[number]}, rank {rank:,}\n{count:,} occurrences"
            points.append(Point(number, rank, count, label))
            rows.append([names[number], f"{rank:,}", f"{count:,}"])
    powers = [10.0**n for n in range(20)]
    x = Axis("rank", format=charts.short, log=True, values=powers)
    svg = charts.lines(points, x, x._replace(title=""), dots=False)
    return {
        "title": "Occurrences by rank",
        "note": "A straight line is Zipf's law; a steep end has tokens that hardly occur.",
        "svg": markup(svg),
        "head": ["Name", "Rank", "Occurrences"],
        "rows": rows,
    }


def unused_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Yield a title for each kind of unused tokens, and their number in each row of the report."""
    for key, title in (
        ("never_used", "never used"),
        ("unreachable", "that no text gives"),
        ("inside_longer_ones", "used almost only inside longer ones"),
    ):
        values = [row["unused"][key] for row in rows]
        yield title, [NOTHING if value is None else f"{value:,}" for value in values]


def script_rows(rows: Sequence[Mapping[str, Any]]) -> list[Variables]:
    """Return the number of tokens of each script, by the rows of the report."""
    by_row = [row["tokens_by_script"] for row in rows]
    totals = {name: sum(one.get(name, 0) for one in by_row) for one in by_row for name in one}
    names = sorted(totals, key=lambda name: (-totals[name], name))
    colours = [colour_of(number) for number in range(len(by_row))]
    numbers = [[one.get(name, 0) for name in names] for one in by_row]
    cells = bars(numbers, colours, lambda value: f"{value:,}")
    return [
        {"name": name.replace("_", " "), "cells": [column[at] for column in cells]}
        for at, name in enumerate(names)
    ]


def _decade(number: int) -> str:
    """Return the name of a bar of the histogram of frequencies."""
    units = ("", "k", "M", "G", "T", "P", "E")
    return f"{10 ** (number % 3)}{units[number // 3]}+" if number else "1+"


def _ranks(size: int) -> list[int]:
    """Return some forty ranks from 1 to the last, evenly on a scale of logarithms."""
    if size == 0:
        return []
    steps = 40
    return sorted({round(math.exp(math.log(size) * n / steps)) for n in range(steps + 1)})

"""The report of an evaluation as one HTML page, which needs no network and no other file.

`Page` collects what the page shows beside the figures of the report: all tokens, texts with their
tokens, words of the counts, and what differs between tokenizers. Text of tokens and names is
hostile: Jinja2 escapes all of it, and the page's policy runs no script but its own.

Memory: the tokens of all tokenizers, and one part of the counts for each thread.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.evaluation.differences import ADDED_TOKEN, Pair, PartDifference, differences
from bpe_beam.evaluation.metrics import RARE_BELOW
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.html_report import charts
from bpe_beam.html_report.charts import Axis, Point
from bpe_beam.html_report.costs import (
    COST_HEADINGS,
    EMBEDDING,
    WIDTH,
    cost_rows,
    shown_vocabularies,
    source_rows,
    source_sizes,
)
from bpe_beam.html_report.samples import tokens_of
from bpe_beam.html_report.token_table import KINDS, token_table
from bpe_beam.html_report.visible import visible, visible_bytes
from bpe_beam.html_report.words import MOST_TOKENS as MOST_WORD_TOKENS
from bpe_beam.html_report.words import CostlyWord, WordLists, shown_text, word_lists

MOST_WORDS = 100
"""The most words of a list."""

MOST_TOKENS = 200
"""The most tokens of a list of those of one tokenizer only; the table of tokens has all."""

MOST_CELLS = 4_000
"""The most figures of sources in a table: with more, only the largest sources are in it."""

MOST_ADDED_TOKENS = 5
"""The most added tokens with equal settings that have a row each where they differ."""

MOST_LINES = 8
"""The most sources of a chart."""

_FIGURES = {
    "bytes_per_token": ("Bytes a token", "more"),
    "characters_per_token": ("Characters a token", "more"),
    "words_per_token": ("Words a token", "more"),
    "tokens_per_word": ("Tokens a word (fertility)", "less"),
    "words_kept_whole": ("Words kept whole (STRR)", "more"),
    "continued_words": ("Words of two or more tokens", "less"),
    "single_byte_tokens": ("Tokens of one byte", "less"),
    "partial_character_tokens": ("Tokens that are not whole characters", "less"),
    "unknown_tokens": ("Unknown tokens", "less"),
    "vocabulary_used": ("Vocabulary used", ""),
    "vocabulary_used_share": ("Vocabulary used, share", "more"),
    "rare_vocabulary_share": (f"Rare tokens (under {RARE_BELOW} times)", "less"),
    "entropy": ("Entropy, bits a token", ""),
    "renyi_entropy": ("Rényi entropy (2.5), bits", ""),
    "renyi_efficiency": ("Rényi efficiency (2.5)", "more"),
    "tokens": ("Tokens", "less"),
    "words": ("Words", ""),
    "bytes": ("Bytes", ""),
    "characters": ("Characters", ""),
}
"""Titles of the figures, and whether more or less is better."""

_SHARES = {
    "words_kept_whole",
    "continued_words",
    "single_byte_tokens",
    "partial_character_tokens",
    "unknown_tokens",
    "vocabulary_used_share",
    "rare_vocabulary_share",
}
_CARDS = ("bytes_per_token", "tokens_per_word", "words_kept_whole", "rare_vocabulary_share")
_COST_FIGURES = (
    "bytes_per_token",
    "words_kept_whole",
    "vocabulary_used_share",
    "rare_vocabulary_share",
)
_CURVES = ("tokens_per_word", "bytes_per_token", "words_kept_whole", "renyi_efficiency")
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
_NOTHING = "\u2013"
"""A figure that there is not."""

_LENGTHS = 17
"""Tokens of this number of bytes and more are in one bar."""


class Evaluated(NamedTuple):
    """A tokenizer of the report.

    Attributes:
        vocabulary: Its tokens.
        total: The tally of all sources.
    """

    vocabulary: Vocabulary
    total: Tally


def page(
    report: Mapping[str, Any],
    tokenizers: Sequence[Evaluated],
    samples: Mapping[str, str],
    words: CountedParts | None = None,
    *,
    on_step: Callable[[], None] = lambda: None,
) -> bytes:
    """Return the report as an HTML page; equal arguments give equal bytes."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.from_string(_resource("page.html"))
    context = _Page(report, tokenizers, samples, words, on_step).context()
    made = template.render(context).encode()
    on_step()
    return made


def page_steps(tokenizers: int, words: CountedParts | None) -> int:
    """Return the number of steps in which `page` makes a page."""
    parts = 0 if words is None else len(words.added_up)
    return parts + tokenizers + max(tokenizers - 1, 0) + 1  # tables, pairs, and the page itself


def _resource(name: str) -> str:
    return files("bpe_beam.html_report").joinpath(name).read_text("utf-8")


class _Page:
    """What the template shows."""

    def __init__(
        self,
        report: Mapping[str, Any],
        tokenizers: Sequence[Evaluated],
        samples: Mapping[str, str],
        words: CountedParts | None,
        on_step: Callable[[], None],
    ) -> None:
        self._report = report
        self._on_step = on_step
        self._rows: list[Mapping[str, Any]] = report["tokenizers"]
        self._names = [visible(one["name"]) for one in self._rows]
        self._tokenizers = tokenizers
        id_spaces = [one.vocabulary.tokenizer.max_id + 1 for one in tokenizers]
        self._shown = shown_vocabularies(self._rows, self._names, id_spaces)
        most = max(1, MOST_CELLS // len(self._shown))
        self._sources_shown, self._sources_note = _largest(source_sizes(self._shown), most)
        self._samples = samples
        first, *others = (one.vocabulary for one in tokenizers)
        self._pairs = [
            Pair(first, other, (self._names[0], name))
            for other, name in zip(others, self._names[1:], strict=True)
        ]
        self._lists: WordLists | None = None
        self._words: list[list[CostlyWord]] = [[] for _ in tokenizers]
        if words is not None:
            self._lists = word_lists(
                words,
                [first, *others],
                self._names,
                MOST_WORDS,
                pairs=self._pairs,
                on_part=on_step,
            )
            self._words = self._lists.costly

    def context(self) -> dict[str, Any]:
        """Return the variables of the template."""
        from markupsafe import Markup

        script = _resource("page.js")
        sources, by_source = self._sources()
        curves = list(self._curves())
        different = list(self._differences())
        words = [
            {w.text: w.tokens for w in own if w.is_whole and w.text == visible(w.text)}
            for own in self._words
        ]
        listed = list(dict.fromkeys(text for own in words for text in own))
        return {
            "style": Markup(_resource("page.css")),
            "script": Markup(script),
            "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            "subtitle": self._subtitle(),
            "sections": list(self._sections(sources is not None, different)),
            "tokenizers": [self._tokenizer(number) for number in range(len(self._rows))],
            "figures": list(self._figures()),
            "vocabularies": self._shown,
            "costs": self._costs() if len(self._shown) > 1 else None,
            "curves": curves,
            "sources": sources,
            "fairness": list(self._fairness()),
            "histograms": [*self._length_charts(), *self._frequency_charts()],
            "unused": list(self._unused()),
            "scripts": self._scripts(),
            "kinds": list(KINDS.values()),
            "with_words": any(self._words),
            "listed_words": listed[:MOST_WORDS],
            "differences": different,
            "tables": list(self._tables()),
            "data": {
                "kinds": list(KINDS.values()),
                "sources": by_source,
                "words": words,
                "first_word": listed[0] if listed else " tokenization",
            },
        }

    def _subtitle(self) -> str:
        words = self._report["words"]
        if not words:
            return ""
        amounts = [
            f"{words[key]:,} {title}"
            for key, title in (
                ("words", "words"),
                ("unique_words", "different ones"),
                ("documents", "documents"),
            )
            if words.get(key) is not None
        ]
        rules = [words.get("normalizer"), words.get("pretokenizer")]
        named = "+".join(visible(rule) for rule in rules if rule and rule != "none")
        return ", ".join(amounts) + (f"; divided by {named}" if named else "")

    def _sections(
        self, sources: bool, different: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[str, str]]:
        yield "summary", "Summary"
        if len(self._shown) > 1:
            yield "costs", "Costs"
        if sources:
            yield "sources", "Sources"
        yield "vocabulary", "Vocabulary"
        yield "samples", "Samples"
        if any(self._words):
            yield "words", "Words"
        yield "tokens", "Tokens"
        yield "merges", "Merges"
        for number, one in enumerate(different):
            yield (
                f"differences{number + 1}",
                "Differences" if len(different) == 1 else f"{one['a']} and {one['b']}",
            )
        yield "about", "About"

    # ---- figures ----

    def _tokenizer(self, number: int) -> dict[str, Any]:
        row, one = self._rows[number], self._tokenizers[number]
        totals = [each["figures"]["total"] for each in self._rows]
        cards = [(key, _marked(key, [total.get(key) for total in totals])) for key in _CARDS]
        return {
            "name": self._names[number],
            "colour": _colour(number),
            "model": visible(row["model"]),
            "exact": row["exact"],
            "fingerprint": row["fingerprint"],
            "vocab_size": f"{row['figures']['vocab_size']:,}",
            "cards": [
                (_FIGURES[key][0], *marked[number])
                for key, marked in cards
                if totals[number].get(key) is not None
            ],
            "samples": [self._sample(one, title, text) for title, text in self._samples.items()],
            "words": [
                {
                    "text": word.text,
                    "count": word.occurrences,
                    "cost": -word.cost,
                    "tokens": _divided(one.vocabulary, word.tokens),
                    "all_tokens": word.all_tokens,
                }
                for word in self._words[number]
            ],
        }

    def _sample(self, one: Evaluated, title: str, text: str) -> dict[str, Any]:
        tokens = tokens_of(one.vocabulary, text)
        note = f"{len(text):,} characters"
        if tokens is not None:
            ratio = len(text) / max(len(tokens), 1)
            note = f"{len(tokens):,} tokens, {ratio:.2f} characters a token"
        shown = None if tokens is None else _divided(one.vocabulary, tokens, breaks=True)
        return {"title": visible(title), "note": note, "tokens": shown}

    def _figures(self) -> Iterator[dict[str, Any]]:
        unknown = () if self._report["words"] else ("words", "characters")  # of tokens alone
        for key, (title, better) in _FIGURES.items():
            values = [one.figures["total"].get(key) for one in self._shown]
            if key not in unknown and any(value is not None for value in values):
                yield {"title": title, "values": _marked(key, values), "better": better}

    def _costs(self) -> dict[str, Any]:
        """Return the tables of what each vocabulary costs, in all and of each source."""
        figures = [
            [_shown(key, one.figures["total"].get(key)) for key in _COST_FIGURES]
            for one in self._shown
        ]
        of_sources = source_rows(self._shown, self._sources_shown, _NOTHING)
        return {
            "head": [*COST_HEADINGS, *(_FIGURES[key][0] for key in _COST_FIGURES)],
            "rows": [a + b for a, b in zip(cost_rows(self._shown), figures, strict=True)],
            "source_rows": [[visible(name), *cells] for name, *cells in of_sources],
            "note": self._sources_note,
            "embedding": EMBEDDING,
            "width": WIDTH,
            "rare_below": RARE_BELOW,
        }

    # ---- vocabulary sizes ----

    def _points(self, number: int) -> list[Mapping[str, Any]]:
        """Return the figures of all sizes of a tokenizer, the smallest first."""
        row = self._rows[number]
        return [*row["curve"], row["figures"]]

    def _curves(self) -> Iterator[dict[str, Any]]:
        if not any(row["curve"] for row in self._rows):
            return
        sizes = {one["vocab_size"] for n in range(len(self._rows)) for one in self._points(n)}
        x = Axis("vocabulary", format=charts.short, log=True, values=sorted(sizes))
        for key in _CURVES:
            points = [
                (number, one["vocab_size"], one["total"].get(key), self._names[number])
                for number in range(len(self._rows))
                for one in self._points(number)
            ]
            yield self._curve(_FIGURES[key][0], x, key, points)
        yield from self._curves_by_source(x)

    def _curves_by_source(self, x: Axis) -> Iterator[dict[str, Any]]:
        key = "bytes_per_token"
        for number, row in enumerate(self._rows):
            sources = row["figures"]["sources"]
            if not row["curve"] or not sources:
                continue
            sizes = {name: figures["bytes"] for name, figures in sources.items()}
            most = _largest_first(sizes)[:MOST_LINES]
            points = [
                (series, one["vocab_size"], one["sources"][source].get(key), visible(source))
                for series, source in enumerate(most)
                for one in self._points(number)
            ]
            found = self._curve(f"Bytes a token by source, {self._names[number]}", x, key, points)
            legend = [(_colour(n), visible(source)) for n, source in enumerate(most)]
            note = "The largest sources." if len(sources) > len(most) else ""
            yield {**found, "legend": legend, "note": note}

    def _curve(
        self,
        title: str,
        x: Axis,
        key: str,
        points: Sequence[tuple[int, int, float | None, str]],
    ) -> dict[str, Any]:
        known = [(n, size, value, name) for n, size, value, name in points if value is not None]
        share = key in _SHARES
        svg = charts.lines(
            [
                Point(n, size, value, f"{name}, {size:,} tokens\n{_shown(key, value)}")
                for n, size, value, name in known
            ],
            x,
            Axis("", format=charts.percent if share else charts.number),
        )
        return {
            "title": title,
            "note": "",
            "svg": _markup(svg),
            "head": ["Name", "Vocabulary", title],
            "rows": [[name, f"{size:,}", _shown(key, value)] for _, size, value, name in known],
        }

    # ---- sources ----

    def _sources(self) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """Return the table of sources, and the figures that it can show."""
        found = [one.figures["sources"] or {} for one in self._shown]
        names = self._sources_shown
        if not names:
            return None, {}
        figures: dict[str, dict[str, Any]] = {}
        for key in _BY_SOURCE:
            values = [[own.get(name, {}).get(key) for name in names] for own in found]
            if any(value is not None for own in values for value in own):
                figures[key] = {
                    "title": _FIGURES[key][0],
                    "share": key in _SHARES,
                    "integer": key == "tokens",
                    "values": [[_rounded(value) for value in own] for own in values],
                }
        premiums = [one.figures.get("premiums") or {} for one in self._shown]
        if any(premiums):
            figures["premiums"] = {
                "title": "Tokens over those of the chosen source",
                "share": False,
                "integer": False,
                "values": [[_rounded(own.get(name)) for name in names] for own in premiums],
            }
        first = next(iter(figures))
        colours = [_colour(one.number) for one in self._shown]
        cells = _bars(figures[first]["values"], colours, lambda value: _shown(first, value))
        words = [
            next(own[name].get("words") or None for own in found if name in own) for name in names
        ]
        rows = [
            {
                "name": visible(name),
                "words": "" if words[at] is None else words[at],
                "words_text": _shown("words", words[at]),
                "cells": [column[at] for column in cells],
            }
            for at, name in enumerate(names)
        ]
        titles = [(key, figure["title"]) for key, figure in figures.items()]
        return {"figures": titles, "rows": rows, "note": self._sources_note}, figures

    def _fairness(self) -> Iterator[tuple[str, ...]]:
        for one in self._shown:
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

    # ---- vocabulary ----

    def _length_charts(self) -> Iterator[dict[str, Any]]:
        names = [str(length) for length in range(1, _LENGTHS)] + [f"{_LENGTHS}+"]
        for title, weighted in (("Length of the tokens", False), ("Length as they occur", True)):
            shares = []
            for one in self._tokenizers:
                lengths = np.array([len(data) for data in one.vocabulary.token_bytes], np.int64)
                weights = one.total.tokens if weighted else np.ones(len(lengths), np.int64)
                bars = np.zeros(_LENGTHS + 1, np.int64)
                np.add.at(bars, np.minimum(lengths, _LENGTHS), weights)
                shares.append((bars[1:] / max(int(weights.sum()), 1)).tolist())
            note = "Share of all occurrences." if weighted else "Share of the vocabulary."
            yield self._histogram(title, note, "bytes", names, shares, percent=True)

    def _frequency_charts(self) -> Iterator[dict[str, Any]]:
        most = max((int(one.total.tokens.max(initial=0)) for one in self._tokenizers), default=0)
        decades = len(str(most))
        names = ["0", *(_decade(number) for number in range(decades))]
        numbers = []
        for one in self._tokenizers:
            # Exact, which a logarithm is not.
            edges = np.array([0, *(10**n for n in range(min(decades, 19)))], np.int64)
            at = np.searchsorted(edges, one.total.tokens, side="right") - 1
            numbers.append(np.bincount(at, minlength=len(names)).tolist())
        yield self._histogram(
            "How often tokens occur",
            "Number of tokens, with added ones.",
            "occurrences",
            names,
            numbers,
        )
        yield self._by_rank()

    def _histogram(
        self,
        title: str,
        note: str,
        axis: str,
        names: Sequence[str],
        values: Sequence[Sequence[float]],
        *,
        percent: bool = False,
    ) -> dict[str, Any]:
        def shown(value: float) -> str:
            return f"{100 * value:.1f} %" if percent else f"{value:,}"

        points = [
            Point(number, name, own[at], f"{self._names[number]}, {name} {axis}\n{shown(own[at])}")
            for at, name in enumerate(names)
            for number, own in enumerate(values)
        ]
        y = Axis("", format=charts.percent if percent else charts.short, zero=True)
        return {
            "title": title,
            "note": note,
            "svg": _markup(charts.bars(points, Axis(axis), y)),
            "head": [axis, *self._names],
            "rows": [[name, *(shown(own[at]) for own in values)] for at, name in enumerate(names)],
        }

    def _by_rank(self) -> dict[str, Any]:
        points, rows = [], []
        for number, one in enumerate(self._tokenizers):
            counts = np.sort(one.total.tokens[one.total.tokens > 0])[::-1]
            for rank in _ranks(len(counts)):
                count = int(counts[rank - 1])
                label = f"{self._names[number]}, rank {rank:,}\n{count:,} occurrences"
                points.append(Point(number, rank, count, label))
                rows.append([self._names[number], f"{rank:,}", f"{count:,}"])
        powers = [10.0**n for n in range(20)]
        x = Axis("rank", format=charts.short, log=True, values=powers)
        svg = charts.lines(points, x, x._replace(title=""), dots=False)
        return {
            "title": "Occurrences by rank",
            "note": "A straight line is Zipf's law; a steep end has tokens that hardly occur.",
            "svg": _markup(svg),
            "head": ["Name", "Rank", "Occurrences"],
            "rows": rows,
        }

    def _unused(self) -> Iterator[tuple[str, list[str]]]:
        for key, title in (
            ("never_used", "never used"),
            ("unreachable", "that no text gives"),
            ("inside_longer_ones", "used almost only inside longer ones"),
        ):
            values = [row["unused"][key] for row in self._rows]
            yield title, [_NOTHING if value is None else f"{value:,}" for value in values]

    def _scripts(self) -> list[dict[str, Any]]:
        found = [row["tokens_by_script"] for row in self._rows]
        totals = {name: sum(own.get(name, 0) for own in found) for own in found for name in own}
        names = sorted(totals, key=lambda name: (-totals[name], name))
        colours = [_colour(number) for number in range(len(found))]
        numbers = [[own.get(name, 0) for name in names] for own in found]
        cells = _bars(numbers, colours, lambda value: f"{value:,}")
        return [
            {"name": name.replace("_", " "), "cells": [column[at] for column in cells]}
            for at, name in enumerate(names)
        ]

    def _tables(self) -> Iterator[str]:
        for one in self._tokenizers:
            yield token_table(one.vocabulary, one.total.tokens)
            self._on_step()

    # ---- differences ----

    def _differences(self) -> Iterator[dict[str, Any]]:
        """Yield what differs between the first tokenizer and each of the others."""
        for number, pair in enumerate(self._pairs, 1):
            names = pair.names
            found = differences(pair)
            yield {
                "a": names[0],
                "b": names[1],
                "common": f"{found.tokens.common:,}",
                "ids": f"{len(found.ids):,}",
                "only_a": _only(names[0], found.tokens.only_a),
                "only_b": _only(names[1], found.tokens.only_b),
                "merges": {
                    "common": f"{found.merges.common:,}",
                    "equal_first": f"{found.merges.equal_first:,}",
                    "only_a": f"{len(found.merges.only_a):,}",
                    "only_b": f"{len(found.merges.only_b):,}",
                },
                "parts": list(_folded(found.parts)),
                "second": number,
                "words": None if self._lists is None else _other_words(self._lists, pair, number),
            }
            self._on_step()


# ---- parts ----


def _other_words(lists: WordLists, pair: Pair, second: int) -> dict[str, Any]:
    """Return the words that a pair encodes differently."""
    found = lists.differences[second - 1]
    words = pa.array([word.word for word in found.most_frequent], pa.large_string())
    divided = []
    for vocabulary, encoder in zip(
        pair.vocabularies, (lists.encoders[0], lists.encoders[second]), strict=True
    ):
        encoded = encoder.encode(words)
        first = (one.values[:MOST_WORD_TOKENS].to_numpy() for one in encoded)
        lengths = np.diff(encoded.offsets.to_numpy()).tolist()
        tokens = (_divided(vocabulary, vocabulary.positions(ids)) for ids in first)
        divided.append([*zip(tokens, lengths, strict=True)])
    return {
        "other_unique": f"{found.other_unique_words:,}",
        "other": _shown("unknown_tokens", found.other_words / max(found.words, 1)),
        "rows": [
            {"text": visible(shown_text(word.word)), "count": word.count, "a": a, "b": b}
            for word, a, b in zip(found.most_frequent, *divided, strict=True)
        ],
    }


def _largest(sizes: Mapping[str, int], most: int) -> tuple[list[str], str]:
    """Return the names of the largest sources, sorted, and a note if there are more."""
    names = _largest_first(sizes)[:most]
    note = f"The {most:,} largest of {len(sizes):,} sources; the JSON and the CSV have all."
    return sorted(names), note if len(names) < len(sizes) else ""


def _largest_first(sizes: Mapping[str, int]) -> list[str]:
    return sorted(sizes, key=lambda name: (-sizes[name], name))


def _colour(number: int) -> int:
    return number % charts.COLOURS + 1


def _markup(svg: str) -> Any:
    from markupsafe import Markup

    return Markup(svg)


def _shown(key: str, value: float | None) -> str:
    """Return a figure as people read it."""
    if value is None:
        return _NOTHING
    if key in _SHARES:
        return f"{100 * value:.1f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _rounded(value: float | None) -> float | None:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _divided(
    vocabulary: Vocabulary, tokens: Iterable[int], *, breaks: bool = False
) -> list[tuple[int, str]]:
    """Return tokens with their text as a page shows it, with line breaks or only their sign."""
    shown = [(int(at), visible_bytes(vocabulary.token_bytes[at])) for at in tokens]
    return [(at, text.replace("\u23ce", "\u23ce\n")) for at, text in shown] if breaks else shown


def _marked(key: str, values: Sequence[float | None]) -> list[tuple[str, bool]]:
    """Return a figure of several vocabularies as people read it, and whether it is the best shown.

    No value is marked if all look equal.
    """
    texts = [_shown(key, value) for value in values]
    known = [value for value in values if value is not None]
    better = _FIGURES[key][1]
    if not better or len({_shown(key, value) for value in known}) < 2:
        return [(text, False) for text in texts]
    best = _shown(key, max(known) if better == "more" else min(known))
    return [(text, text == best) for text in texts]


def _folded(parts: Sequence[PartDifference]) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield the parts that differ; many added tokens with equal settings are one row.

    A row has the part, what it is in both tokenizers, and the names of the tokens that are folded.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        if part.part.startswith(ADDED_TOKEN):
            alike.setdefault((part.a, part.b), []).append(part.part.removeprefix(ADDED_TOKEN))
    for part in parts:
        tokens = alike.get((part.a, part.b), [])
        if not part.part.startswith(ADDED_TOKEN) or len(tokens) <= MOST_ADDED_TOKENS:
            yield visible(part.part), visible(part.a), visible(part.b), []
        elif part.part == ADDED_TOKEN + tokens[0]:
            names = [visible(token) for token in tokens]
            yield f"{len(tokens):,} added tokens", visible(part.a), visible(part.b), names


def _bars(
    values: Sequence[Sequence[float | None]],
    colours: Sequence[int],
    shown: Callable[[Any], str],
) -> list[list[dict[str, Any]]]:
    """Return the cells of bars, by column: widths in percent of the greatest value."""
    most = max((value for own in values for value in own if value is not None), default=0)
    return [
        [
            {
                "value": "" if value is None else value,
                "text": _NOTHING if value is None else shown(value),
                "width": f"{100 * value / most:.1f}" if most and value else "0",
                "colour": colour,
            }
            for value in own
        ]
        for colour, own in zip(colours, values, strict=True)
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


def _only(name: str, rows: Sequence[Any]) -> dict[str, Any]:
    return {
        "name": name,
        "count": f"{len(rows):,}",
        "more": len(rows) > MOST_TOKENS,
        "tokens": [(row.id, visible(row.token)) for row in rows[:MOST_TOKENS]],
    }

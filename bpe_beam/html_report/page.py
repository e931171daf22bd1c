"""The report of an evaluation as one HTML page, which needs no network and no other file.

The page has more than the figures of the report: all tokens, texts with their tokens, words of the
counts, and the differences between tokenizers. Text of tokens and names is hostile: Jinja2 escapes
all of it, and the page's policy runs no script but its own.

Memory: the tokens of all tokenizers, and one partition of the counts for each thread.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from bpe_beam.errors import DataError
from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.evaluation.differences import Pair
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.html_report import tables
from bpe_beam.html_report.charts import size_curves, vocabulary_charts
from bpe_beam.html_report.costly_words import (
    MOST_WORDS,
    CostlyWord,
    WordLists,
    pair_differences,
    word_lists,
)
from bpe_beam.html_report.figures import (
    FIGURES,
    Evaluated,
    Variables,
    colour_of,
    marked,
    token_texts,
    visible,
)
from bpe_beam.html_report.token_table import KINDS, token_table

MOST_CELLS = 4_000
"""The most figures of sources in a table: with more, only the largest sources are in it."""

MOST_TOKENS = 200
"""The maximum length of a list of tokens of one tokenizer only; the table of tokens has all."""

_CARDS = ("bytes_per_token", "tokens_per_word", "words_kept_whole", "rare_vocabulary_share")


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
    environment.filters |= {"number": "{:,}".format, "visible": visible}
    template = environment.from_string(_resource("page.html"))
    context = _Page(report, tokenizers, samples, words, on_step).context()
    html = template.render(context).encode()
    on_step()
    return html


def page_steps(tokenizers: int, words: CountedParts | None) -> int:
    """Return the number of steps in which `page` makes a page."""
    parts = 0 if words is None else len(words.added_up)
    return parts + tokenizers + max(tokenizers - 1, 0) + 1  # tables, pairs, and the page itself


def _resource(name: str) -> str:
    return files("bpe_beam.html_report").joinpath(name).read_text("utf-8")


class _Page:
    """The variables of the template."""

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
        self._shown = tables.shown_vocabularies(self._rows, self._names, id_spaces)
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

    def context(self) -> Variables:
        """Return all variables of the template."""
        script = _resource("page.js")
        limit = max(1, MOST_CELLS // len(self._shown))
        shown_sources, sources_note = tables.largest(tables.source_sizes(self._shown), limit)
        sources, by_source = tables.source_table(self._shown, shown_sources)
        words = [
            {w.text: w.tokens for w in costly if w.is_whole and w.text == visible(w.text)}
            for costly in self._words
        ]
        listed = list(dict.fromkeys(text for of_one in words for text in of_one))
        several = len(self._shown) > 1
        return {
            "style": _resource("page.css"),
            "script": script,
            "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            "words": self._report["words"],
            "reports": self._rows,
            "tokenizers": [self._tokenizer(number) for number in range(len(self._rows))],
            "figures": list(self._figures()),
            "vocabularies": self._shown,
            "costs": tables.cost_tables(self._shown, shown_sources) if several else None,
            "curves": list(size_curves(self._rows, self._names)),
            "sources": sources,
            "sources_note": sources_note,
            "fairness": [
                (one.label, cost, fair)
                for one in self._shown
                for cost, fair in (one.figures["fairness"] or {}).items()
                if fair is not None
            ],
            "histograms": list(vocabulary_charts(self._tokenizers, self._names)),
            "scripts": tables.script_rows(self._rows),
            "kinds": list(KINDS.values()),
            "with_words": any(self._words),
            "listed_words": listed[:MOST_WORDS],
            "differences": list(self._differences()),
            "most_tokens": MOST_TOKENS,
            "tables": list(self._tables()),
            "data": {
                "kinds": list(KINDS.values()),
                "sources": by_source,
                "words": words,
                "first_word": listed[0] if listed else " tokenization",
            },
        }

    def _tokenizer(self, number: int) -> Variables:
        row, vocabulary = self._rows[number], self._tokenizers[number].vocabulary
        totals = [each["figures"]["total"] for each in self._rows]
        return {
            "name": self._names[number],
            "colour": colour_of(number),
            "model": visible(row["model"]),
            "exact": row["exact"],
            "fingerprint": row["fingerprint"],
            "vocab_size": f"{row['figures']['vocab_size']:,}",
            "cards": [
                (FIGURES[key][0], *marked(key, [total[key] for total in totals])[number])
                for key in _CARDS
                if totals[number][key] is not None
            ],
            "samples": [self._sample(number, *sample) for sample in self._samples.items()],
            "words": [(word, token_texts(vocabulary, word.tokens)) for word in self._words[number]],
        }

    def _sample(self, number: int, title: str, text: str) -> Variables:
        vocabulary = self._tokenizers[number].vocabulary
        tokens = tokens_of(vocabulary, text)
        if tokens is None:
            return {"title": visible(title), "note": f"{len(text):,} characters", "tokens": None}
        ratio = len(text) / max(len(tokens), 1)
        return {
            "title": visible(title),
            "note": f"{len(tokens):,} tokens, {ratio:.2f} characters a token",
            "tokens": token_texts(vocabulary, tokens, breaks=True),
        }

    def _figures(self) -> Iterator[Variables]:
        unknown = () if self._report["words"] else ("words", "characters")  # of tokens alone
        for key, (title, better) in FIGURES.items():
            values = [one.figures["total"][key] for one in self._shown]
            if key not in unknown and any(value is not None for value in values):
                yield {"title": title, "values": marked(key, values), "better": better}

    def _tables(self) -> Iterator[str]:
        for one in self._tokenizers:
            yield token_table(one.vocabulary, one.total.tokens)
            self._on_step()

    def _differences(self) -> Iterator[Variables]:
        """Yield the differences between the first tokenizer and each of the others."""
        for second, pair in enumerate(self._pairs, 1):
            yield pair_differences(pair, second, self._lists)
            self._on_step()


def tokens_of(vocabulary: Vocabulary, text: str) -> list[int] | None:
    """Return the positions of the tokens of a text; None if the vocabulary lacks a symbol of it."""
    try:
        ids = vocabulary.tokenizer.encode(text)
    except DataError:
        return None
    return [*vocabulary.positions(np.array(ids, np.uint32)).tolist()]

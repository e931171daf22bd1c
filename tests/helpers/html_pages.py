"""Pages of the HTML report, of tokenizers with hostile tokens and names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import msgspec
from counts_folders import STORAGE, write_folder
from small_tokenizers import learn

import bpe_beam
from bpe_beam.evaluation.counted import CountedParts, tallies_of_counts
from bpe_beam.evaluation.report import VERSION, Report, WordsSummary, report_of
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.html_report.figures import Evaluated
from bpe_beam.html_report.page import page
from bpe_beam.html_report.samples import SAMPLES
from bpe_beam.tokenizer.components.models import WordLevel
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "\u202eevil\u2066\u200f",
    "\x00\x1b[31m\x07",
    "{{ 7 * 7 }}",
    "]]>&lt;b&amp;",
)
"""Tokens that would be more than text on a page that is careless."""

SIZES = (290, 320, 350)


def tokenizers() -> tuple[Vocabulary, Vocabulary]:
    """Return a tokenizer of bytes, with special tokens that are hostile, and one of whole words."""
    words = {"<unk>": 0, " the": 1, " 12": 2, **{token: 3 + n for n, token in enumerate(HOSTILE)}}
    return (
        Vocabulary(learn("bytes", HOSTILE[:2], 120)),
        Vocabulary(Tokenizer(TokenizerSpec(WordLevel(words)))),
    )


def html_page(folder: Path, names: Sequence[str] = ("bytes", HOSTILE[0])) -> bytes:
    """Return a page of both tokenizers with figures of three sources, sizes, words and samples.

    Args:
        folder: A folder for counts.
        names: The names of the tokenizers.
    """
    write_folder(folder)
    texts = {
        "a<b>": ["It's what they'll say, <the> theory of the weather 12 12"] * 9,
        "zh": ["\u4f60\u597d \u4e16\u754c the"] * 5,
        HOSTILE[1]: ["whether three thirty-three"],
    }
    counts = bpe_beam.count(texts)
    reports, evaluated = [], []
    for name, vocabulary in zip(names, tokenizers(), strict=True):
        tallies = tallies_of_counts(CountedParts.in_memory(counts), vocabulary)
        sizes = SIZES if name == names[0] else ()
        report, total = report_of(name, vocabulary, tallies, sizes, exact=name == names[0])
        reports.append(report)
        evaluated.append(Evaluated(vocabulary, total))
    whole = Report(VERSION, WordsSummary("none", "gpt2", 15, 100, 40), reports)
    samples = {**SAMPLES, HOSTILE[1]: "".join(HOSTILE)}
    words = CountedParts.of_folder(STORAGE, str(folder))
    return page(msgspec.to_builtins(whole), evaluated, samples, words)


class Elements(HTMLParser):
    """The elements of a page, and its text.

    Attributes:
        found: The tag and the attributes of each element.
        texts: The text of the elements of each tag.
        unclosed: The tags that are open at the end.
    """

    _EMPTY = frozenset({"meta", "input", "img", "br"})

    def __init__(self, html: bytes) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.unclosed: list[str] = []
        self.feed(html.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self._EMPTY:
            self.unclosed.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed[-1] == tag, (tag, self.unclosed[-4:], self.getpos())
        self.unclosed.pop()

    def handle_data(self, data: str) -> None:
        if self.unclosed:
            self.texts[self.unclosed[-1]][-1] += data


def attribute_names(html: bytes) -> set[str]:
    """Return the names of all attributes of a page."""
    return {name for _, attributes in Elements(html).found for name in attributes}


def urls(html: bytes) -> set[str]:
    """Return the addresses that a page leads to or loads, without those of its own parts."""
    found = {
        str(value)
        for _, attributes in Elements(html).found
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href", "action", "srcset", "data")
    }
    found |= set(re.findall(r"url\(([^)]*)\)", html.decode()))
    return {url for url in found if not url.startswith("#")}

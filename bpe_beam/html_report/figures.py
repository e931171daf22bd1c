"""Values as the page shows them: text without hidden characters, figures, cells with bars."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from bpe_beam.evaluation.metrics import RARE_BELOW, Tally
from bpe_beam.evaluation.vocabulary import Vocabulary

Variables: TypeAlias = dict[str, Any]
"""Variables of the page's template, by name."""

FIGURES = {
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

SHARES = {
    "words_kept_whole",
    "continued_words",
    "single_byte_tokens",
    "partial_character_tokens",
    "unknown_tokens",
    "vocabulary_used_share",
    "rare_vocabulary_share",
}
"""Figures that are shown in percent."""

NOTHING = "\u2013"
"""A figure that does not exist."""

_COLOURS = 8
"""The colours of tokenizers and sources in the style sheet; the ninth has the first colour."""

_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
"""Categories of characters that draw nothing, or that change how others are drawn."""


class Evaluated(NamedTuple):
    """The tokens of a tokenizer of the report, and the tally of all sources."""

    vocabulary: Vocabulary
    total: Tally


def visible(text: str) -> str:
    """Return a text without control characters, bidi marks and the like: they are `<U+202E>`.

    A line break is `⏎`. A combining mark at the start has a circle to stand on.
    """
    shown = "".join(
        "\u23ce"
        if character == "\n"
        else f"<U+{ord(character):04X}>"
        if unicodedata.category(character) in _HIDDEN
        else character
        for character in text
    )
    return f"\u25cc{shown}" if text and unicodedata.combining(text[0]) else shown


def visible_bytes(data: bytes) -> str:
    """Return bytes as a page shows them: as text, or in hex if they are not whole characters."""
    try:
        return visible(data.decode())
    except UnicodeDecodeError:
        return f"<{data.hex(' ').upper()}>"


def token_texts(
    vocabulary: Vocabulary, tokens: Iterable[int], *, breaks: bool = False
) -> list[tuple[int, str]]:
    """Return tokens with their text as a page shows it, with line breaks or only their sign."""
    shown = [(int(at), visible_bytes(vocabulary.token_bytes[at])) for at in tokens]
    return [(at, text.replace("\u23ce", "\u23ce\n")) for at, text in shown] if breaks else shown


def as_text(key: str, value: float | None) -> str:
    """Return a figure as people read it."""
    if value is None:
        return NOTHING
    if key in SHARES:
        return f"{100 * value:.1f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def marked(key: str, values: Sequence[float | None]) -> list[tuple[str, bool]]:
    """Return a figure of several vocabularies as people read it, and whether it is the best shown.

    No value is marked if all look equal.
    """
    texts = [as_text(key, value) for value in values]
    known = [value for value in values if value is not None]
    better = FIGURES[key][1]
    if not better or len({as_text(key, value) for value in known}) < 2:
        return [(text, False) for text in texts]
    best = as_text(key, max(known) if better == "more" else min(known))
    return [(text, text == best) for text in texts]


def bars(
    rows: Sequence[Sequence[float | None]], colours: Sequence[int], shown: Callable[[Any], str]
) -> list[list[Variables]]:
    """Return cells with bars, whose widths are in percent of the greatest value of all rows."""
    greatest = max((value for row in rows for value in row if value is not None), default=0)
    return [
        [
            {
                "value": "" if value is None else value,
                "text": NOTHING if value is None else shown(value),
                "width": f"{100 * value / greatest:.1f}" if greatest and value else "0",
                "colour": colour,
            }
            for value, colour in zip(row, colours, strict=True)
        ]
        for row in rows
    ]


def colour_of(number: int) -> int:
    """Return the number in the style sheet of the colour of a tokenizer, or of a source."""
    return number % _COLOURS + 1

"""Figures as the page shows them: titles, the best value of a row, cells with bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from bpe_beam.evaluation.metrics import RARE_BELOW
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.html_report import charts
from bpe_beam.html_report.visible import visible_bytes

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


def as_text(key: str, value: float | None) -> str:
    """Return a figure as people read it."""
    if value is None:
        return NOTHING
    if key in SHARES:
        return f"{100 * value:.1f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def rounded(value: float | None) -> float | None:
    """Return a figure with six digits, for the page's script."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


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
    values: Sequence[Sequence[float | None]],
    colours: Sequence[int],
    shown: Callable[[Any], str],
) -> list[list[Variables]]:
    """Return the cells of bars, by column: widths in percent of the greatest value."""
    greatest = max((value for column in values for value in column if value is not None), default=0)
    return [
        [
            {
                "value": "" if value is None else value,
                "text": NOTHING if value is None else shown(value),
                "width": f"{100 * value / greatest:.1f}" if greatest and value else "0",
                "colour": colour,
            }
            for value in column
        ]
        for colour, column in zip(colours, values, strict=True)
    ]


def colour_of(number: int) -> int:
    """Return the number of a tokenizer's colour in the style sheet."""
    return number % charts.COLOURS + 1


def markup(svg: str) -> Any:
    """Return SVG that the template does not escape."""
    from markupsafe import Markup

    return Markup(svg)


def token_texts(
    vocabulary: Vocabulary, tokens: Iterable[int], *, breaks: bool = False
) -> list[tuple[int, str]]:
    """Return tokens with their text as a page shows it, with line breaks or only their sign."""
    shown = [(int(at), visible_bytes(vocabulary.token_bytes[at])) for at in tokens]
    return [(at, text.replace("\u23ce", "\u23ce\n")) for at, text in shown] if breaks else shown

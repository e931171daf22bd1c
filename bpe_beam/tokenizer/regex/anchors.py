r"""Anchors: positions in a text. The engines have the same signs, some with other meanings."""

from __future__ import annotations

from bpe_beam.tokenizer.regex.escapes import word_set
from bpe_beam.tokenizer.regex.fragment import (
    NOT_SUPPORTED,
    READ_OTHERWISE,
    Dialect,
    Fragment,
    Reader,
)

_LINE_START: dict[Dialect, Fragment] = {
    # Oniguruma has no line after a line break that ends the text.
    "regex": Fragment("^", r"(?:\A|(?<=\n))", 0, is_position=True),
    "oniguruma": Fragment(r"(?:^(?!\Z)|\A)", "^", 0, is_position=True),
}
LINE_END = Fragment("$", "$", 0, is_position=True)
_WORD_ANCHORS = {
    "b": "(?:(?<={word})(?!{word})|(?<!{word})(?={word}))",
    "B": "(?:(?<={word})(?={word})|(?<!{word})(?!{word}))",
    "m": "(?:(?<!{word})(?={word}))",
    "M": "(?:(?<={word})(?!{word}))",
}


def line_start(dialect: Dialect) -> Fragment:
    """Return `^`, the beginning of the text or of a line."""
    return _LINE_START[dialect]


def spelled_before(fragment: Fragment, following: int) -> tuple[str, str]:
    """Return a fragment's spellings where characters follow.

    Args:
        fragment: The fragment.
        following: The fewest characters that follow; with at least one, all line starts are alike.
    """
    if following and fragment in _LINE_START.values():
        return "^", "^"
    return fragment.regex, fragment.oniguruma


def read_anchor(reader: Reader, dialect: Dialect, *, in_lookbehind: bool) -> Fragment | None:
    r"""Return an anchor after a backslash: `\A \z \Z \b \B`, and `\m \M` of `regex`.

    Args:
        reader: Its position is after the backslash; on return, after the anchor.
        dialect: The engine whose rules apply.
        in_lookbehind: Whether the anchor is in a lookbehind, where Oniguruma supports few.

    Returns:
        The anchor; None, with nothing read, if something else comes next.

    Raises:
        UsageError: It cannot be where it is.
    """
    start = reader.at - 1
    letter = reader.next
    if letter == "A":
        reader.take()
        return Fragment(r"\A", r"\A", 0, is_position=True)
    if letter in ("z", "Z"):
        reader.take()
        if in_lookbehind:
            reader.refuse(start, f"in a lookbehind {NOT_SUPPORTED}", "put it outside")
        if letter == "Z" and dialect == "oniguruma":
            return Fragment(r"(?=\n?\Z)", r"\Z", 0, is_position=True)
        return Fragment(r"\Z", r"\z", 0, is_position=True)
    if letter not in _WORD_ANCHORS or (letter in "mM" and dialect == "oniguruma"):
        return None
    reader.take()
    if dialect == "oniguruma":
        spelled = _WORD_ANCHORS[letter].format(word=word_set(dialect).bare_regex)
        return Fragment(spelled, f"\\{letter}", 0, is_position=True)
    if in_lookbehind:
        reader.refuse(start, f"{READ_OTHERWISE} in a lookbehind", "put it outside")
    return Fragment(f"\\{letter}", _spelled(letter), 0, is_position=True)


def read_spelled_anchor(reader: Reader) -> Fragment | None:
    r"""Read what `\b` and its like of `regex` were written as, so that `regex` runs these again.

    Args:
        reader: Its position is at a parenthesis; on return, after the anchor.

    Returns:
        The anchor; None, with nothing read, if something else comes next.
    """
    for letter in _WORD_ANCHORS:
        spelled = _spelled(letter)
        if reader.accept(spelled):
            return Fragment(f"\\{letter}", spelled, 0, is_position=True)
    return None


def _spelled(letter: str) -> str:
    """Return Oniguruma's spelling of a word boundary of `regex`."""
    return _WORD_ANCHORS[letter].format(word=word_set("regex").bare_oniguruma)

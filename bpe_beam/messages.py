"""Parts of messages that many rooms write: sizes, times, the first of many names, near names."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence

_SHOWN_CHARACTERS = 80
"""The length of a value in a message, in characters."""


def and_more(hidden: int) -> str:
    """Return the words for items that a message does not list: "and 1,234 more"."""
    return f"and {hidden:,} more"


def first_few(items: Sequence[str], limit: int) -> list[str]:
    """Return the first items, followed by the number of the others as one more item."""
    hidden = len(items) - limit
    return [*items[:limit], *([and_more(hidden)] if hidden > 0 else [])]


def list_few(items: Sequence[str], limit: int = 5) -> str:
    """Return the first items with commas, and the number of the others: "a, b and 3 more"."""
    hidden = len(items) - limit
    return ", ".join(items[:limit]) + (f" {and_more(hidden)}" if hidden > 0 else "")


def has_pair_at(text: str, start: int) -> bool:
    """Return whether a text has the two surrogates of one character at a position."""
    high, low = text[start : start + 1], text[start + 1 : start + 2]
    return "\ud800" <= high <= "\udbff" and "\udc00" <= low <= "\udfff"


def shortened(value: object) -> str:
    """Return a value as JSON, with at most 80 characters."""
    try:
        if isinstance(value, str):
            value = value[:100]  # a message needs no more, and escaping a long text is slow
        text = json.dumps(value, ensure_ascii=False)
        text = text.encode("utf-8", "backslashreplace").decode()  # lone surrogates
    except (TypeError, ValueError, RecursionError):  # no JSON, an integer too long, too deep
        text = f"a {type(value).__name__}"
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[: _SHOWN_CHARACTERS - 3]}..."


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """Return "; did you mean X?" with the known name nearest to a name; "" if none is near."""
    import difflib  # rarely needed, and slow to import

    by_lower_case = {each.lower(): each for each in reversed(list(known))}
    near = difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=cutoff)
    return f"; did you mean {by_lower_case[near[0]]}?" if near else ""


def quoted(text: str) -> str:
    """Return a name, in quotes if it is empty, has blanks at its ends or control characters."""
    return text if text and text.isprintable() and text == text.strip() else repr(text)


def command(*words: str) -> str:
    """Return a command of this package for a shell, quoted where necessary."""
    return shlex.join(["bpe-beam", *words])


def format_bytes(count: int) -> str:
    """Return a number of bytes with three digits and a unit (powers of 1,000): "1.2 GB"."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if abs(size) < 999.5 or unit == "PB":
            break
        size /= 1000
    if unit == "B" or abs(size) >= 999.5:
        return f"{size:,.0f} {unit}"
    return f"{size:.3g} {unit}"


def format_seconds(seconds: float) -> str:
    """Return a time in one unit or two: "0.42 s", "12.3 s", "2 min 5 s", "3 h 4 min"."""
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"

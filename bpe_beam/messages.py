"""Parts of messages that many rooms write: the first of many names, a long value, a near name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

_SHOWN_CHARACTERS = 80
"""The length of a value in a message, in characters."""


def and_more(hidden: int) -> str:
    """Return the words for items that a message leaves out: "and 1,234 more"."""
    return f"and {hidden:,} more"


def first_few(items: Sequence[str], limit: int) -> list[str]:
    """Return the first items, and behind them the number of the others as one more item.

    Args:
        items: What a message or a summary names.
        limit: The number of items to keep, at least 1.
    """
    hidden = len(items) - limit
    return [*items[:limit], *([and_more(hidden)] if hidden > 0 else [])]


def list_few(items: Sequence[str], limit: int = 5) -> str:
    """Return the first items with commas, and the number of the others: "a, b and 3 more".

    Args:
        items: What a message names.
        limit: The number of items to name, at least 1.
    """
    hidden = len(items) - limit
    return ", ".join(items[:limit]) + (f" {and_more(hidden)}" if hidden > 0 else "")


def shortened(value: object) -> str:
    """Return a value as JSON, of at most 80 characters."""
    try:
        if isinstance(value, str):
            value = value[:100]  # a message needs no more, and escaping a long text takes long
        text = json.dumps(value, ensure_ascii=False)
        text = text.encode("utf-8", "backslashreplace").decode()  # lone surrogates
    except (TypeError, ValueError, RecursionError):  # no JSON, an integer too long, too deep
        text = f"a {type(value).__name__}"
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[: _SHOWN_CHARACTERS - 3]}..."


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """Return "; did you mean X?" with the known name nearest to an unknown one; "" if none is near.

    Args:
        name: The unknown name.
        known: The names that exist.
        cutoff: The least likeness of a near name, from 0 (any name) to 1 (the same name).
    """
    import difflib  # rarely needed, and slow to import

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]}?" if near else ""

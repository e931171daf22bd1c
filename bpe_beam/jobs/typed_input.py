"""Standard input that somebody types."""

from __future__ import annotations

import sys


def tell_who_types(what: str) -> None:
    """If standard input is a terminal, say on stderr what is waited for, and how to end it.

    Args:
        what: What is typed, such as "the text".
    """
    if sys.stdin.isatty():
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        print(f"type {what}, then {end} on a line of its own:", file=sys.stderr, flush=True)

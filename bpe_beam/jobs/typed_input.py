"""A prompt for standard input on a terminal."""

from __future__ import annotations

import sys


def prompt_on_terminal(what: str) -> None:
    """Say on stderr what to type and how to end it, if standard input is a terminal.

    Args:
        what: What is typed, such as "the text".
    """
    if sys.stdin.isatty():
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        print(f"type {what}, then {end} on a line of its own:", file=sys.stderr, flush=True)

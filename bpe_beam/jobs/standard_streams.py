"""Standard input and output of jobs whose input or result a person types or reads."""

from __future__ import annotations

import sys


def prompt_on_terminal(what: str) -> None:
    """Say on stderr what to type, such as "the text", if standard input is a terminal."""
    if sys.stdin.isatty():
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        print(f"type {what}, then {end} on a line of its own:", file=sys.stderr, flush=True)


def write_stdout(data: bytes) -> None:
    """Write bytes to stdout, after what was printed before."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()

"""Standard input and output of jobs whose input or result a person types or reads."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from bpe_beam.storage.json_file import json_bytes


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


def write_json(
    value: Mapping[str, Any], target: str, storage_options: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write a value as JSON to a path, a URL, or stdout.

    Args:
        value: JSON values by name; they are written in this order.
        target: A path or URL; `-` is stdout.
        storage_options: Options of file systems by protocol.

    Raises:
        DataError: The file cannot be written.
    """
    data = json_bytes(dict(value))
    if target == "-":
        write_stdout(data)
        return
    from bpe_beam.storage import Storage  # imports fsspec, which stdout does not need

    Storage(storage_options).write_bytes(target, data)

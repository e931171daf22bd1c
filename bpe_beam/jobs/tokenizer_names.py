"""Short names of the tokenizers that a command compares."""

from __future__ import annotations

from collections.abc import Sequence

from bpe_beam.folders.artifact_names import TOKENIZER_FILE
from bpe_beam.storage import redact


def short_names(paths: Sequence[str]) -> list[str]:
    """Return a name for each tokenizer: its folder; the whole paths where those are equal."""
    whole = [redact(path) for path in paths]
    short = []
    for path in whole:
        parts = [part for part in path.split("/") if part]
        if len(parts) > 1 and parts[-1] == TOKENIZER_FILE:
            parts.pop()
        short.append(parts[-1] if parts else path)
    return short if len(set(short)) == len(short) else whole

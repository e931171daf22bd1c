"""Settings of `diff`."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.settings.common import MESSAGES, OUTPUT_FORMATS, RunSettings
from bpe_beam.settings.field import Settings, option, part

MAX_TOP_WORDS = 1_000_000


@dataclass(frozen=True)
class DiffSettings(Settings):
    """Settings of `diff`: two tokenizers, and counts whose words both encode."""

    a: str = option(
        flag="a",
        metavar="A",
        help="The first tokenizer: a file or the folder that has it; a path or URL.",
    )
    b: str = option(flag="b", metavar="B", help="The second tokenizer.")
    counts: str | None = option(
        None,
        metavar="DIR",
        help="Folder that count wrote: also compare how the tokenizers encode its words.",
    )
    top: int = option(
        20,
        help="Number of words to show that are encoded differently, the most frequent first.",
        between=(1, MAX_TOP_WORDS),
    )
    format: str = option(
        "text",
        choices=OUTPUT_FORMATS,
        help="How to write the differences to stdout: json has all of them, text the first of "
        "each kind.",
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=("workers", "progress", *MESSAGES))

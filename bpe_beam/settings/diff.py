"""Settings of `diff`."""

from __future__ import annotations

from bpe_beam.settings.common import MESSAGES, OUTPUT_FORMATS, RunSettings
from bpe_beam.settings.field import Settings, option, part

MAX_TOP_WORDS = 1_000_000


class DiffSettings(Settings, frozen=True):
    """Settings of `diff`: two tokenizers, and counts whose words both encode."""

    a: str = option(
        flag="a",
        metavar="A",
        help="First tokenizer: its file, or the folder that contains it; a path or URL.",
    )
    b: str = option(flag="b", metavar="B", help="Second tokenizer.")
    counts: str | None = option(
        None,
        metavar="DIR",
        help="Folder that count wrote. Also compare how the tokenizers encode its words.",
    )
    top: int = option(
        20,
        help="Number of words to show that the tokenizers encode differently, most frequent first.",
        between=(1, MAX_TOP_WORDS),
    )
    format: str = option(
        "text",
        choices=OUTPUT_FORMATS,
        help="Format of the result on stdout. json: all differences. text: the first ones of each "
        "kind.",
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=("workers", "progress", *MESSAGES))

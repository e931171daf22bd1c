"""Settings of jobs on tokenizers: `encode`, `decode`, `export`, `diff` and `inspect`."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.settings.common import (
    MESSAGES,
    OUTPUT_FORMATS,
    AllowedSpecial,
    RunSettings,
    allowed_special_option,
    tokenizer_option,
)
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.parsing import check_utf8, parse_ids


@dataclass(frozen=True)
class EncodeSettings(Settings):
    """Settings of `encode`: a text to ids."""

    tokenizer: str = tokenizer_option()
    text: str | None = option(
        None,
        flag="text",
        metavar="TEXT",
        help="Text to encode. Put -- before a text that begins with a dash. Without TEXT, stdin "
        "is read as UTF-8, without one newline at its end.",
        check=check_utf8,
    )
    allowed_special: AllowedSpecial = allowed_special_option()
    add_special_tokens: bool = option(
        False,
        help="Insert the special tokens of the tokenizer's post-processor, such as [CLS] and "
        "[SEP].",
    )
    show: bool = option(False, help="Print a table of tokens, ids and offsets.")
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


@dataclass(frozen=True)
class DecodeSettings(Settings):
    """Settings of `decode`: ids to text."""

    tokenizer: str = tokenizer_option()
    ids: tuple[int, ...] | None = option(
        None,
        flag="ids",
        metavar="ID ...",
        kind="many",
        help="Ids, separated by spaces or commas. Without them, stdin is read.",
        parse=lambda texts: parse_ids(" ".join(texts)),
        check=lambda ids: None,
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


EXPORT_FORMATS = ("tokenizer_json", "transformers", "sentencepiece", "tiktoken")
"""The forms of a tokenizer that `export` writes."""


@dataclass(frozen=True)
class ExportSettings(Settings):
    """Settings of `export`: a tokenizer to write in another form."""

    tokenizer: str = tokenizer_option(flag="tokenizer", metavar="TOKENIZER")
    output: str = option(
        metavar="PATH", help="File to write; for the format transformers, a folder."
    )
    format: str = option(
        choices=EXPORT_FORMATS,
        help="Format to write. tokenizer_json: Hugging Face's file. transformers: a folder that "
        "AutoTokenizer opens. sentencepiece: a .model file. tiktoken: a .tiktoken file.",
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


MAX_TOP_WORDS = 1_000_000


@dataclass(frozen=True)
class DiffSettings(Settings):
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


@dataclass(frozen=True)
class InspectSettings(Settings):
    """Settings of `inspect`: a tokenizer, a counts folder or a folder of shards to show."""

    path: str = option(
        flag="path", metavar="PATH", help="Tokenizer file, or a folder that a job wrote."
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)

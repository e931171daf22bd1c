"""Settings of `export`."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.settings.common import MESSAGES, RunSettings
from bpe_beam.settings.field import Settings, option, part

EXPORT_FORMATS = ("tokenizer_json", "transformers", "sentencepiece", "tiktoken")
"""The forms of a tokenizer that `export` writes."""


@dataclass(frozen=True)
class ExportSettings(Settings):
    """Settings of `export`: a tokenizer to write in another form."""

    tokenizer: str = option(
        flag="tokenizer",
        metavar="TOKENIZER",
        help="The tokenizer: tokenizer.json, a SentencePiece .model, a tekken.json, or a folder "
        "with a tokenizer; a path or URL.",
    )
    output: str = option(metavar="PATH", help="File to write; with transformers a folder.")
    format: str = option(
        choices=EXPORT_FORMATS,
        help="Form of the tokenizer: tokenizer_json is Hugging Face's file, transformers a folder "
        "that AutoTokenizer opens, sentencepiece a .model file, tiktoken a .tiktoken file.",
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)

"""Settings of `export`."""

from __future__ import annotations

from bpe_beam.settings.common import MESSAGES, RunSettings, tokenizer_option
from bpe_beam.settings.field import Settings, option, part

EXPORT_FORMATS = ("tokenizer_json", "transformers", "sentencepiece", "tiktoken")
"""The forms of a tokenizer that `export` writes."""


class ExportSettings(Settings, frozen=True):
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

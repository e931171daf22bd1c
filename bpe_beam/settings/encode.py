"""Settings of `encode`."""

from __future__ import annotations

from bpe_beam.settings import common
from bpe_beam.settings.common import MESSAGES, AllowedSpecial, RunSettings
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.parsing import check_utf8


class EncodeSettings(Settings, frozen=True):
    """Settings of `encode`: a text to ids."""

    tokenizer: str = common.tokenizer_option()
    text: str | None = option(
        None,
        flag="text",
        metavar="TEXT",
        help="Text to encode. Put -- before a text that begins with a dash. Without TEXT, stdin "
        "is read as UTF-8; one newline at its end is removed.",
        check=check_utf8,
    )
    allowed_special: AllowedSpecial = common.allowed_special_option()
    add_special_tokens: bool = option(
        False,
        help="Insert the special tokens of the tokenizer's post-processor, such as [CLS] and "
        "[SEP].",
    )
    show: bool = option(False, help="Print a table of tokens, ids and offsets.")
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)

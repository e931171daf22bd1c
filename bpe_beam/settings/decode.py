"""Settings of `decode`."""

from __future__ import annotations

from bpe_beam.settings.common import MESSAGES, RunSettings, tokenizer_option
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.parsing import parse_ids


class DecodeSettings(Settings, frozen=True):
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

"""Settings of `inspect`."""

from __future__ import annotations

from bpe_beam.settings.common import MESSAGES, RunSettings
from bpe_beam.settings.field import Settings, option, part


class InspectSettings(Settings, frozen=True):
    """Settings of `inspect`: a tokenizer, a counts folder or a folder of shards to show."""

    path: str = option(
        flag="path", metavar="PATH", help="Tokenizer file, or a folder that a job wrote."
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)

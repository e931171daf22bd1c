"""Settings of `quickstart`."""

from __future__ import annotations

from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.field import Settings, option, part


class QuickstartSettings(Settings, frozen=True):
    """Settings of `quickstart`: train, tokenize and verify on text that every machine has."""

    output: str = option("bpe-beam-quickstart", metavar="DIR", help="Folder for all results.")
    run: RunSettings = part(RunSettings, RunSettings())

"""Settings of `counts show`."""

from __future__ import annotations

from bpe_beam.settings import common
from bpe_beam.settings.common import MESSAGES, RunSettings
from bpe_beam.settings.field import Settings, option, part

MAX_TOP = 1_000_000


class ShowCountsSettings(Settings, frozen=True):
    """Settings of `counts show`: the most frequent words of a counts folder."""

    folder: str = common.counts_folder_option()
    top: int = option(20, help="Number of words to print.", between=(1, MAX_TOP))
    sources: tuple[str, ...] | None = common.chosen_sources_option("count")
    min_count: int = common.min_count_option("Skip")
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)

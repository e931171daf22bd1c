"""Settings of `counts filter`."""

from __future__ import annotations

from bpe_beam.errors import require
from bpe_beam.settings import common
from bpe_beam.settings.common import WRITING, RunSettings
from bpe_beam.settings.field import Settings, part


class FilterCountsSettings(Settings, frozen=True):
    """Settings of `counts filter`: a counts folder to a smaller one."""

    folder: str = common.counts_folder_option()
    output: str = common.output_option("new counts")
    min_count: int = common.min_count_option("Drop", identity="always")
    sources: tuple[str, ...] | None = common.chosen_sources_option("keep", identity="always")
    run: RunSettings = part(RunSettings, RunSettings(), only=WRITING)

    def check(self) -> None:
        require(
            self.min_count > 1 or self.sources is not None,
            "must be at least 2 if no source is chosen: nothing would be dropped",
            "min_count",
            remedy="give {min_count} or {sources}",
        )

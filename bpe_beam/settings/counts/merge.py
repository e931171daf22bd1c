"""Settings of `counts merge`."""

from __future__ import annotations

from bpe_beam.errors import require
from bpe_beam.settings.common import WRITING, RunSettings, output_option
from bpe_beam.settings.field import Settings, option, part


class MergeCountsSettings(Settings, frozen=True):
    """Settings of `counts merge`: counts folders to one."""

    folders: tuple[str, ...] = option(
        flag="folders", metavar="DIR", kind="many", help="Two or more folders that count wrote."
    )
    output: str = output_option("new counts")
    run: RunSettings = part(RunSettings, RunSettings(), only=WRITING)

    def check(self) -> None:
        require(
            len(self.folders) >= 2,
            f"must be two or more counts folders, got {len(self.folders)}",
            "folders",
        )

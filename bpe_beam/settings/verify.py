"""Settings of `verify`."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.errors import require
from bpe_beam.settings.common import MESSAGES, InputSettings, RunSettings
from bpe_beam.settings.field import Settings, option, part


@dataclass(frozen=True)
class VerifySettings(Settings):
    """Settings of `verify`: a folder of shards that is read back."""

    folder: str = option(flag="folder", metavar="DIR", help="Folder that tokenize wrote.")
    full: bool = option(False, help="Also encode the corpus again and compare each token.")
    input: InputSettings | None = part(
        InputSettings,
        None,
        only=("inputs",),
        helps={
            "inputs": "The corpus, where it is now, to compare its files with those that were "
            "tokenized: paths, URLs, folders, globs, or @FILE."
        },
    )
    run: RunSettings = part(
        RunSettings, RunSettings(), only=("runner", "workers", "progress", *MESSAGES)
    )

    def check(self) -> None:
        """Refuse a Beam runner, and a full comparison without the corpus."""
        require(
            self.run.in_process and not self.run.runner_options,
            "verify runs in this process: it has no runner and no flags of a runner",
        )

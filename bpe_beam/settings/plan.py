"""Settings of `plan`."""

from __future__ import annotations

from bpe_beam.settings.common import LISTING, MESSAGES, InputSettings, RunSettings
from bpe_beam.settings.field import Settings, option, part


class PlanSettings(Settings, frozen=True):
    """Settings of `plan`: a corpus whose plan is shown."""

    input: InputSettings = part(InputSettings, only=LISTING)
    output: str | None = option(
        None, metavar="F", help="Write the whole plan as JSON to this path or URL; - is stdout."
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)

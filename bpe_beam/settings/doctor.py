"""Settings of `doctor`."""

from __future__ import annotations

from bpe_beam.settings.common import MESSAGES, OUTPUT_FORMATS, RunSettings
from bpe_beam.settings.field import Settings, option, part


class DoctorSettings(Settings, frozen=True):
    """Settings of `doctor`: what works on this machine."""

    paths: tuple[str, ...] = option(
        (),
        flag="paths",
        metavar="PATH",
        kind="many",
        help="Paths or URLs that must exist, such as the bucket of a future job.",
    )
    format: str = option("text", choices=OUTPUT_FORMATS, help="Format of the result on stdout.")
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)

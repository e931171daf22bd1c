"""Settings of `doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.settings.common import MESSAGES, OUTPUT_FORMATS, RunSettings
from bpe_beam.settings.field import Settings, option, part


@dataclass(frozen=True)
class DoctorSettings(Settings):
    """Settings of `doctor`: what works on this machine."""

    paths: tuple[str, ...] = option(
        (),
        flag="paths",
        metavar="PATH",
        kind="many",
        help="Paths or URLs that must be there, such as a bucket of a job to come.",
    )
    format: str = option("text", choices=OUTPUT_FORMATS, help="How to write the result to stdout.")
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)

"""Settings of `doctor` and `quickstart`, which try what works on this machine."""

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
        help="Paths or URLs that must exist, such as the bucket of a future job.",
    )
    format: str = option("text", choices=OUTPUT_FORMATS, help="Format of the result on stdout.")
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


@dataclass(frozen=True)
class QuickstartSettings(Settings):
    """Settings of `quickstart`: train, tokenize and verify on text that every machine has."""

    output: str = option("bpe-beam-quickstart", metavar="DIR", help="Folder for all results.")
    run: RunSettings = part(RunSettings, RunSettings())

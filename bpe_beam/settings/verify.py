"""Settings of `verify`."""

from __future__ import annotations

from bpe_beam.settings.common import MESSAGES, InputSettings, RunSettings
from bpe_beam.settings.field import Settings, option, part


class VerifySettings(Settings, frozen=True):
    """Settings of `verify`: folders that are read back."""

    folders: tuple[str, ...] = option(
        flag="folder",
        metavar="DIR",
        kind="many",
        help="Folders that tokenize, convert, WriteTokens, count or train wrote. If a folder "
        "contains one folder per format, train and validation, or the windows of a stream, all of "
        "them are verified. Globs also on stores.",
    )
    full: bool = option(False, help="Also encode the corpus again and compare every token.")
    input: InputSettings | None = part(
        InputSettings,
        None,
        only=("inputs",),
        helps={
            "inputs": "The corpus at its current location. Its files are compared with the "
            "files that were tokenized. Paths, URLs, folders, globs, or @FILE."
        },
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=("workers", "progress", *MESSAGES))

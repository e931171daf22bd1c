"""Settings of `stream-tokenize`."""

from __future__ import annotations

from bpe_beam.errors import require
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.field import Settings, option, own_options, part
from bpe_beam.settings.tokenize import ArrangementSettings, TokenizeSettings

_WEEK = 7 * 24 * 3600  # in seconds


class StreamTokenizeSettings(Settings, frozen=True):
    """Settings of `stream-tokenize`: files that arrive over time to windows of token shards."""

    GROUP = "watching"

    tokenize: TokenizeSettings = part(
        TokenizeSettings,
        without=(
            "cluster",
            "workers",
            "overwrite",
            "columns",
            *(each.name for each in own_options(ArrangementSettings)),
        ),
        helps={"formats": "Format of the shards."},
    )
    poll_seconds: int = option(
        10,
        help="Seconds between two listings of the inputs.",
        between=(1, _WEEK),
    )
    window_seconds: int = option(
        60,
        help="Length of a window in seconds. Files that arrive within a window become one folder "
        "of shards.",
        between=(0, _WEEK),
    )
    until_idle_seconds: int | None = option(
        None,
        help="Stop when no file has arrived for N seconds (default: run until stopped).",
        between=(0, _WEEK),
    )

    bad_files: str = option(
        "fail",
        choices=("fail", "set_aside"),
        help="What a file that cannot be read does, or a window that exceeds --max-rejects or "
        "--max-lost: fail ends the stream; set_aside goes on without the file or its unusable "
        "records, and names them.",
    )

    def check(self) -> None:
        require(
            len(self.tokenize.formats) == 1,
            f"must be one for a stream, got {', '.join(self.tokenize.formats)}",
            "formats",
        )
        require(
            not self.run.in_process,
            "must be a runner that streams",
            "runner",
            remedy="give FlinkRunner, PrismRunner or another, with its flags",
        )
        require(
            not self.run.makes_template,
            "stream-tokenize has no template; count and tokenize have one",
        )

    @property
    def run(self) -> RunSettings:
        return self.tokenize.run

"""What the streaming job is told to do: the settings of tokenizing, and when to look."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.settings.checks import require
from bpe_beam.settings.common import RunSettings, TokenizeSettings

_MOST_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True)
class StreamTokenizeSettings:
    """Files that come over time to windows of token shards.

    Attributes:
        tokenize: What is watched, and how it is tokenized.
        poll_seconds: Time between two looks.
        window_seconds: A window is made so long after its first file was ready.
        until_idle_seconds: End when there was nothing to do for so long; None: never.
    """

    tokenize: TokenizeSettings
    poll_seconds: int = 10
    window_seconds: int = 60
    until_idle_seconds: int | None = None

    def __post_init__(self) -> None:
        """Checks each setting."""
        for name, least in (("poll_seconds", 1), ("window_seconds", 0), ("until_idle_seconds", 0)):
            value = getattr(self, name)
            require(
                value is None or least <= value <= _MOST_SECONDS,
                f"{name} must be between {least} and {_MOST_SECONDS:,} (a week), not {value}",
            )
        require(
            not self.run.in_process,
            "stream-tokenize needs a runner that streams, which the one in process does not: "
            "give --runner FlinkRunner, PrismRunner or another, with its flags",
        )
        require(
            not any(f.startswith("--template_location=") for f in self.run.runner_options),
            "there are templates of count and tokenize, not of stream-tokenize",
        )

    @property
    def run(self) -> RunSettings:
        """How the job runs."""
        return self.tokenize.run

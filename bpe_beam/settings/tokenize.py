"""Settings of `tokenize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bpe_beam.settings.common import (
    InputSettings,
    RunSettings,
    output_option,
    tokenizer_option,
)
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.parsing import check_text, parse_allowed_special
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, SHARD_FORMATS

AllowedSpecial = Literal["none", "all"] | tuple[str, ...]


def allowed_special_option(**more: Any) -> Any:
    """Return the option `--allowed-special`, with other attributes of Option."""
    return option(
        "none",
        metavar="none|all|T,T",
        kind="list",
        help="Special tokens that are recognised in the text; the others are plain text.",
        parse=parse_allowed_special,
        check=_check_allowed_special,
        **more,
    )


def _check_allowed_special(allowed: AllowedSpecial) -> None:
    if isinstance(allowed, tuple):
        check_text(allowed)
    elif allowed not in ("none", "all"):
        raise ValueError(f"must be one of none, all, got {allowed!r}")


@dataclass(frozen=True)
class TokenizeSettings(Settings):
    """Settings of `tokenize`: a corpus and a tokenizer to token shards."""

    input: InputSettings = part(InputSettings)
    tokenizer: str = tokenizer_option()
    output: str = output_option("shards")
    run: RunSettings = part(RunSettings, RunSettings())
    format: str = option(
        DEFAULT_SHARD_FORMAT, choices=SHARD_FORMATS, help="Format of the shards.", identity="always"
    )
    append: str | None = option(
        None, metavar="TOKEN", help="Token put after each document.", identity="always"
    )
    prepend: str | None = option(
        None, metavar="TOKEN", help="Token put before each document.", identity="always"
    )
    allowed_special: AllowedSpecial = allowed_special_option(identity="always")

    def check(self) -> None:
        """Refuse paths that the workers cannot reach."""
        require_reachable(self.run.runner, inputs=self.input.inputs, output=(self.output,))

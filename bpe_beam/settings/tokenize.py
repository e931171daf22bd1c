"""Settings of `tokenize` and `stream-tokenize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bpe_beam.errors import require
from bpe_beam.limits import MAX_DOCUMENT_TOKENS
from bpe_beam.settings.common import (
    InputSettings,
    RunSettings,
    output_option,
    tokenizer_option,
)
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.parsing import BadValueError, check_text, parse_allowed_special
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, SHARD_FORMATS

AllowedSpecial = Literal["none", "all"] | tuple[str, ...]

_WEEK = 7 * 24 * 3600  # in seconds


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
        raise BadValueError(f"must be one of none, all, got {allowed!r}")


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
    like: str | None = option(
        None,
        choices=("preprocess_data",),
        help="Write the bytes of Megatron-LM's own preprocess_data.py: Megatron shards whose ids "
        "are int32 from 65,500 vocabulary entries on, not from 65,537.",
        default_help="none",
    )
    append: str | None = option(
        None, metavar="TOKEN", help="Token put after each document.", identity="always"
    )
    prepend: str | None = option(
        None, metavar="TOKEN", help="Token put before each document.", identity="always"
    )
    allowed_special: AllowedSpecial = allowed_special_option(identity="always")
    add_special_tokens: bool = option(
        False,
        help="Put the special tokens of the tokenizer's post-processor, such as <s>, around each "
        "document; those of --prepend and --append come outside of them.",
        identity="if set",
    )
    empty_documents: str = option(
        "keep",
        choices=("keep", "drop"),
        help="What happens to documents without a token of their text. Dropped ones are counted.",
        identity="if set",
    )
    max_document_tokens: int | None = option(
        None,
        help="Most tokens of a document, those around it included.",
        default_help="what the format allows",
        between=(1, MAX_DOCUMENT_TOKENS),
        identity="if set",
    )
    long_documents: str = option(
        "split",
        choices=("split", "cut"),
        help="What happens to documents beyond --max-document-tokens: they become several "
        "documents, or tokens at the end of their texts are left out. They are counted.",
        identity="if set",
    )

    def check(self) -> None:
        """Choose the format; refuse rules without effect, and paths out of the workers' reach."""
        if self.like is not None:
            like = f"{DEFAULT_SHARD_FORMAT}_{self.like}"
            require(
                self.format in (DEFAULT_SHARD_FORMAT, like),
                f"is about shards of {DEFAULT_SHARD_FORMAT}, got the format {self.format}",
                "like",
            )
            # Frozen dataclasses are set in this way.
            object.__setattr__(self, "format", like)
        require(
            self.max_document_tokens is not None or self.long_documents == "split",
            "has no effect without a limit",
            "long_documents",
            remedy="give {max_document_tokens}",
        )
        require_reachable(self.run.runner, inputs=self.input.inputs, output=(self.output,))


@dataclass(frozen=True)
class StreamTokenizeSettings(Settings):
    """Settings of `stream-tokenize`: files that arrive over time to windows of token shards."""

    GROUP = "watching"

    tokenize: TokenizeSettings = part(TokenizeSettings, without=("workers", "overwrite"))
    poll_seconds: int = option(
        10,
        help="Time between two listings of the inputs.",
        between=(1, _WEEK),
    )
    window_seconds: int = option(
        60,
        help="Length of a window: files that arrive within this time become one folder of shards.",
        between=(0, _WEEK),
    )
    until_idle_seconds: int | None = option(
        None,
        help="End when no file has arrived for this time (default: run until stopped).",
        between=(0, _WEEK),
    )

    def check(self) -> None:
        """Refuse a runner that does not stream, and a template."""
        require(
            not self.run.in_process,
            "must be a runner that streams",
            "runner",
            remedy="give FlinkRunner, PrismRunner or another, with its flags",
        )
        require(
            not any(f.startswith("--template_location=") for f in self.run.runner_options),
            "templates exist of count and tokenize, not of stream-tokenize",
        )

    @property
    def run(self) -> RunSettings:
        """How the job runs."""
        return self.tokenize.run

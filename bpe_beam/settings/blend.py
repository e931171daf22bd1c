"""Settings of `blend`."""

from __future__ import annotations

from bpe_beam.settings.common import MESSAGES, RunSettings
from bpe_beam.settings.field import Settings, option, part


class BlendSettings(Settings, frozen=True):
    """Settings of `blend`: folders of Megatron shards as a list for Megatron-LM."""

    folders: tuple[str, ...] = option(
        flag="folders", metavar="DIR", kind="many", help="Folders of Megatron shards."
    )
    weights: tuple[str, ...] | None = option(
        None,
        metavar="W,W,...",
        kind="list",
        help="Weights of the folders in the same order, such as 0.3,0.7: the share of training "
        "samples from each folder. Weight 0 excludes a folder.",
        default_help="none, so Megatron uses the sizes",
        parse=lambda texts: tuple(weight for text in texts for weight in text.split(",")),
    )
    sequences: str | None = option(
        None,
        metavar="F",
        help="Write the number of sequences and documents of each shard to this path or URL, for "
        "Megatron's --per-dataset-sequences-path.",
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)

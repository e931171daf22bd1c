"""Settings of `mix`."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from bpe_beam.errors import require
from bpe_beam.settings.common import RunSettings, columns_option, output_option
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.tokenize import ArrangementSettings
from bpe_beam.shards.formats import SHARD_FORMATS
from bpe_beam.shards.mixture import (
    DUPLICATES,
    IDENTITIES,
    MAX_TOKENS,
    MixtureOptions,
    parse_amounts,
    parse_epochs,
    parse_share,
    parse_tokens,
)
from bpe_beam.shards.shard_rows import MAX_SEED, Arrangement

_mixing = partial(option, group="mixture")
_by_source = partial(_mixing, (), kind="pairs", check=lambda _: None)

BY = ("tokens", "id")


class MixedOrderSettings(ArrangementSettings, frozen=True):
    """Settings of the order of the documents of a mixture, and of sequences."""

    validation_by: str | None = option(
        None,
        choices=BY,
        help="Input of the hash that chooses documents for validation. tokens: documents with the "
        "same tokens go to the same folder. id: documents with the same id do, as in tokenize; "
        "documents without an id use their tokens.",
        default_help="tokens",
    )
    shuffle_seed: int | None = option(
        None,
        help="Shuffle documents, or sequences, with seed N, in the same order as grain.",
        default_help="the order of the documents' keys, which is random too",
        between=(0, MAX_SEED),
    )
    dry_run: bool = option(
        False,
        help="Write nothing. Show the tokens that each source has and that are asked of it.",
    )

    @property
    def arrangement(self) -> Arrangement:
        """The order and sequences to make."""
        arrangement = super().arrangement
        if arrangement is None:
            return Arrangement(shard_tokens=self.shard_tokens)
        by = self.validation_by or "tokens"
        if self.validation_share is None or by == "id":
            return arrangement
        return replace(arrangement, validation_by="tokens")


class MixSettings(Settings, frozen=True):
    """Settings of `mix`: tokens folders to one, with so many tokens of each source."""

    folders: tuple[str, ...] = option(
        flag="--input",
        metavar="[NAME=]DIR",
        kind="many",
        help="Tokens folders of any format, with the same tokenizer. NAME is the source of all "
        "documents of the folder. Without it, they have their own sources, or if the folder has "
        "none, the name of the folder. Globs also on stores.",
    )
    output: str = output_option("shards")
    run: RunSettings = part(RunSettings, RunSettings())
    tokens: int | None = _mixing(
        None,
        metavar="N",
        help="Number of tokens of the mixture, such as 10B or 500M, divided by --share.",
        parse=parse_tokens,
        between=(1, MAX_TOKENS),
    )
    share: tuple[tuple[str, str], ...] = _by_source(
        metavar="NAME=S,...",
        help="Share of each source in the tokens, such as web=0.6,code=0.4. Only ratios matter. A "
        "source that is not named is left out.",
        parse=parse_share,
    )
    tokens_of: tuple[tuple[str, int], ...] = _by_source(
        metavar="NAME=N,...",
        help="Number of tokens of each source, such as web=6B,code=4B, in place of --tokens and "
        "--share.",
        parse=partial(parse_amounts, name="tokens_of", named=True),
    )
    max_epochs: tuple[tuple[str, int], ...] = _by_source(
        metavar="N|NAME=N,...",
        help="Maximum number of times that a document may be taken, for all sources or by source. "
        "More tokens are refused.",
        parse=parse_epochs,
        default_help="1",
    )
    skip_tokens: tuple[tuple[str, int], ...] = _by_source(
        metavar="N|NAME=N,...",
        help="Leave out the documents that a mixture of N tokens has, and take the following ones: "
        "the next stage of a training. N is divided like --tokens, or given by source.",
        parse=partial(parse_amounts, name="skip_tokens"),
        default_help="0",
    )
    seed: int | None = _mixing(
        None,
        help="Seed of the keys, which choose and order the documents.",
        between=(0, MAX_SEED),
        default_help="0",
    )
    mixture: str | None = _mixing(
        None,
        metavar="F.yaml",
        help="YAML file with the options of this group, such as tokens and share. Options on the "
        "command line win.",
    )
    duplicates: str | None = _mixing(
        None,
        choices=DUPLICATES,
        help="What to do with documents that have the same tokens. drop: take one of them, over "
        "all sources. drop_within_sources: take one of each source.",
        default_help="keep",
    )
    identity: str | None = _mixing(
        None,
        choices=IDENTITIES,
        help="What documents are known by. id: their ids. tokens: their tokens. auto: the ids of a "
        "source where each document has one of its own, else the tokens.",
        default_help="auto",
    )
    format: str | None = option(
        None,
        choices=SHARD_FORMATS,
        help="Format of the shards.",
        default_help="the format of the first folder",
    )
    columns: tuple[str, ...] = columns_option(
        (),
        "Columns for trainers in Parquet and Arrow shards, as in tokenize.",
        default_help="none",
    )
    arranging: MixedOrderSettings = part(
        MixedOrderSettings,
        MixedOrderSettings(),
        helps={
            "validation_share": "Write about this share of the documents of each source to the "
            "folder validation in the output; they are in no mixture. The others are mixed in the "
            "folder train. A hash of the document decides.",
            "shard_tokens": "Approximate maximum number of tokens in a shard. A worker needs about "
            "10 bytes of memory for each.",
        },
    )

    @property
    def options(self) -> MixtureOptions:
        """The options of the mixture that were given."""
        names = MixtureOptions.__struct_fields__
        return MixtureOptions(**{name: getattr(self, name) for name in names})

    def check(self) -> None:
        require(not self.run.makes_template, "mix has no template: it launches several pipelines")
        folders = [each.rpartition("=")[2] for each in self.folders]
        require_reachable(self.run.runner, folders=folders, output=(self.output,))

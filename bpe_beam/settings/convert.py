"""Settings of `convert`."""

from __future__ import annotations

from bpe_beam.errors import require
from bpe_beam.settings.common import RunSettings, columns_option, output_option
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.shards.formats import SHARD_FORMATS

MAX_SHARDS = 100_000


class ConvertSettings(Settings, frozen=True):
    """Settings of `convert`: folders of shards to one, without tokenizing again."""

    folders: tuple[str, ...] = option(
        flag="folders",
        metavar="DIR",
        kind="many",
        help="Folders of shards. Several folders with the same tokenizer are joined in this order. "
        "The output of stream-tokenize means its finished windows. Globs also on stores.",
    )
    output: str = output_option("new shards")
    run: RunSettings = part(RunSettings, RunSettings())
    format: str | None = option(
        None,
        choices=SHARD_FORMATS,
        help="Format of the new shards.",
        default_help="the format of the first folder",
    )
    shards: int | None = option(
        None,
        help="Divide all documents, in their order, into N shards with about the same number of "
        "tokens. If there are fewer than N documents, each becomes a shard.",
        default_help="the same shards",
        between=(1, MAX_SHARDS),
    )

    columns: tuple[str, ...] | None = columns_option(
        None,
        "Columns for trainers in Parquet and Arrow shards, as in tokenize. none leaves these "
        "columns out.",
        default_help="the columns of the folders",
    )

    def check(self) -> None:
        require(
            not self.run.makes_template,
            "convert has no template; count and tokenize have one",
        )
        require_reachable(self.run.runner, folders=self.folders, output=(self.output,))

"""Settings of `count`."""

from __future__ import annotations

from bpe_beam.settings import common
from bpe_beam.settings.cluster import cluster_option
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.training.recipe import DEFAULT_TIE_BREAK, TIE_BREAKS


class WordSettings(Settings, frozen=True):
    """Settings that decide how texts become words."""

    normalizer: str = common.normalizer_option(common.DEFAULT_NORMALIZER, identity="always")
    pretokenizer: str = common.pretokenizer_option(common.DEFAULT_PRETOKENIZER, identity="always")
    special_tokens: tuple[str, ...] = common.special_tokens_option(
        "Special token: it is extracted from the text, and never counted or merged.",
        identity="always",
    )
    tie_break: str = option(
        DEFAULT_TIE_BREAK,
        choices=TIE_BREAKS,
        help="Tie rule of the trainings that will use the counts. first_seen also stores the "
        "position where each word occurs first.",
    )

    @property
    def with_places(self) -> bool:
        """Whether the counts have the position where each word occurs first."""
        return self.tie_break == "first_seen"


class CountSettings(WordSettings, frozen=True, kw_only=True):
    """Settings of `count`: a corpus to word counts."""

    input: InputSettings = part(InputSettings)
    output: str = common.output_option("counts")
    run: RunSettings = part(RunSettings, RunSettings())
    dry_run: bool = common.dry_run_option()
    cluster: tuple[tuple[str, str], ...] = cluster_option()

    def check(self) -> None:
        self.require_effect("cluster", self.dry_run, "a dry run", "{dry_run}")
        require_reachable(self.run.runner, inputs=self.input.inputs, output=(self.output,))

    @property
    def only_estimates(self) -> bool:
        return self.dry_run

"""What a train job resolves once, before it learns: recipe, base tokenizer, counts and identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bpe_beam.counts.manifest import CountsManifest, read_hashed_manifest
from bpe_beam.counts.weights import Weights
from bpe_beam.errors import UsageError
from bpe_beam.jobs.counts.shared import same_folder
from bpe_beam.jobs.train.recipe import check_vocab_size, identity_of, recipe_of
from bpe_beam.jobs.train.weights import WeightRules
from bpe_beam.settings.train import TrainSettings
from bpe_beam.storage import Storage
from bpe_beam.storage.names import absolute
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.initial_vocabulary import check_distributed
from bpe_beam.training.recipe import Recipe


@dataclass(frozen=True)
class PlannedCounts:
    """The counts folder that a job trains from.

    Attributes:
        folder: Its path or URL, as the summary names it.
        manifest: Its manifest.
        sha256: SHA-256 of the manifest's file, in hex.
        weights: The weights of its sources; None: each word counts as often as it occurs.
    """

    folder: str
    manifest: CountsManifest
    sha256: str
    weights: Weights | None

    @property
    def url(self) -> str:
        """The folder as workers on other machines name it."""
        return absolute(self.folder)

    @property
    def factors(self) -> dict[str, int] | None:
        """The number that each source's counts are multiplied by; None: no weights."""
        return None if self.weights is None else self.weights.factors


@dataclass(frozen=True)
class TrainingPlan:
    """What a train job resolves once.

    Attributes:
        settings: The job's settings.
        storage: The storage client.
        recipe: What is trained.
        base_tokenizer: The tokenizer to continue, if any.
        weight_rules: The weights of sources as the settings name them.
        counts: The counts folder; None while the corpus is not counted yet.
    """

    settings: TrainSettings
    storage: Storage
    recipe: Recipe
    base_tokenizer: Tokenizer | None
    weight_rules: WeightRules
    counts: PlannedCounts | None = None

    @property
    def identity(self) -> dict[str, object]:
        """The settings that the tokenizer depends on, without those of the words."""
        base = self.base_tokenizer
        return {
            **identity_of(self.settings, self.recipe),
            **({} if base is None else {"continued": base.fingerprint}),
            **self.weight_rules.identity,
        }

    def with_counts(self, folder: str) -> TrainingPlan:
        """Return the plan with the counts of a folder.

        Raises:
            UsageError: The folder is no finished counts folder, or the weights do not fit it.
            DataError: The manifest is damaged.
        """
        manifest, sha256 = read_hashed_manifest(self.storage, folder)
        return replace(
            self,
            counts=PlannedCounts(folder, manifest, sha256, self.weight_rules.weights(manifest)),
        )


def plan_training(settings: TrainSettings, storage: Storage) -> TrainingPlan:
    """Resolve everything that is known before the first word is read.

    Args:
        settings: The job's settings.
        storage: The storage client.

    Returns:
        The plan; with counts, if the settings name a counts folder.

    Raises:
        UsageError: The settings exclude each other, or do not fit the counts or the base tokenizer.
        DataError: A file is damaged, or storage fails.
    """
    base = None
    if settings.continue_from is not None:
        base = Tokenizer.from_file(settings.continue_from, storage=storage)
    weight_rules = WeightRules.of(settings)
    if settings.counts is None:
        names = (str(settings.normalizer), str(settings.pretokenizer))
        recipe = recipe_of(settings, *names, settings.special_tokens, base)
        check_vocab_size(recipe, base)
        if settings.merge_rounds == "distributed":
            check_distributed(recipe)
        return TrainingPlan(settings, storage, recipe, base, weight_rules)
    if same_folder(settings.counts, settings.output):
        # Or --overwrite would remove the counts before they are read.
        raise UsageError(f"output {settings.output} is the counts' own folder: give another")
    manifest, sha256 = read_hashed_manifest(storage, settings.counts)
    counts = PlannedCounts(settings.counts, manifest, sha256, weight_rules.weights(manifest))
    _check_words(settings, manifest)
    recipe = recipe_of(
        settings, manifest.normalizer, manifest.pretokenizer, manifest.special_tokens, base
    )
    check_vocab_size(recipe, base)
    return TrainingPlan(settings, storage, recipe, base, weight_rules, counts)


def _check_words(settings: TrainSettings, manifest: CountsManifest) -> None:
    """Refuse a normalizer or pre-tokenizer other than that of the counts."""
    counted: Mapping[str, str] = {
        "normalizer": manifest.normalizer,
        "pretokenizer": manifest.pretokenizer,
    }
    for name, value in counted.items():
        wanted = getattr(settings, name)
        if wanted not in (None, value):
            raise UsageError(
                f"must be {value!r}, with which the counts were made, got {wanted!r}",
                (name,),
                "leave it out, or count again",
            )

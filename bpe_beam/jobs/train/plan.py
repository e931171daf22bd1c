"""What a train job resolves once, before it trains: recipe, base tokenizer, counts and identity."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bpe_beam.counts.manifest import CountsManifest, read_hashed_manifest
from bpe_beam.counts.weights import Weights
from bpe_beam.errors import UsageError
from bpe_beam.jobs.counts.shared import refuse_own_folder
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
        weights: The weights of its sources; None: no source has one.
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
        return replace(self, counts=_planned_counts(self.storage, folder, self.weight_rules))


def plan_training(settings: TrainSettings, storage: Storage) -> TrainingPlan:
    """Resolve everything that is known before the first word is read.

    Args:
        settings: The job's settings.
        storage: The storage client.

    Returns:
        The plan; with counts, if the settings name a counts folder.

    Raises:
        UsageError: Settings exclude each other, or do not fit the counts or the base tokenizer.
        DataError: A file is damaged, or storage fails.
    """
    base = None
    if settings.continue_from is not None:
        base = Tokenizer.from_file(settings.continue_from, storage=storage)
    weight_rules = WeightRules.of(settings)
    counts = None
    normalizer, pretokenizer = str(settings.normalizer), str(settings.pretokenizer)
    extracted = settings.special_tokens
    if settings.counts is not None:
        refuse_own_folder(settings.output, (settings.counts,))
        counts = _planned_counts(storage, settings.counts, weight_rules)
        manifest = counts.manifest
        _check_words(settings, manifest)
        normalizer, pretokenizer = manifest.normalizer, manifest.pretokenizer
        extracted = manifest.special_tokens
    recipe = recipe_of(settings, normalizer, pretokenizer, extracted, base)
    check_vocab_size(recipe, base)
    if counts is None and settings.merge_rounds == "distributed":
        check_distributed(recipe)
    return TrainingPlan(settings, storage, recipe, base, weight_rules, counts)


def _planned_counts(storage: Storage, folder: str, rules: WeightRules) -> PlannedCounts:
    manifest, sha256 = read_hashed_manifest(storage, folder)
    return PlannedCounts(folder, manifest, sha256, rules.weights(manifest))


def _check_words(settings: TrainSettings, manifest: CountsManifest) -> None:
    """Refuse a normalizer or pre-tokenizer other than that of the counts."""
    for name in ("normalizer", "pretokenizer"):
        wanted, counted = getattr(settings, name), getattr(manifest, name)
        if wanted not in (None, counted):
            raise UsageError(
                f"must be that of the counts, {counted!r}, got {wanted!r}",
                (name,),
                "leave it out, or count again",
            )

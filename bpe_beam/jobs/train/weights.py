"""The weights of sources as a training's settings name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.weights import (
    Weights,
    explicit_weights,
    parse_temperature,
    parse_weight,
    tempered_weights,
)
from bpe_beam.errors import UsageError
from bpe_beam.settings.train import TrainingSettings


@dataclass(frozen=True)
class WeightRules:
    """The weights of sources as the settings name them: by name, by temperature, or none.

    Attributes:
        numerators: The weight of each named source, over `DENOMINATOR`.
        temperature: The power that each source's share of the text is raised to, from 0 to 1.
    """

    numerators: Mapping[str, int]
    temperature: Decimal | None

    @staticmethod
    def of(settings: TrainingSettings) -> WeightRules:
        """Return the weights that the settings name."""
        return WeightRules(
            {name: parse_weight(name, weight) for name, weight in settings.weights},
            None if settings.temperature is None else parse_temperature(settings.temperature),
        )

    @property
    def identity(self) -> dict[str, object]:
        """Return the part of a tokenizer's identity; empty without weights and temperature."""
        if self.temperature is not None:
            return {"temperature": f"{self.temperature:f}"}
        return {"weights": dict(sorted(self.numerators.items()))} if self.numerators else {}

    def weights(self, manifest: CountsManifest) -> Weights | None:
        """Return the weights of all sources of a counts folder; None without weight rules."""
        if not self.identity:
            return None
        if manifest.sources is None:
            raise UsageError(
                "must have counts by source, and these are not",
                ("weights" if self.temperature is None else "temperature",),
                "count again with {sources} or {source_field}",
            )
        if self.temperature is None:
            weights = explicit_weights(self.numerators, dict.fromkeys(manifest.sources, 1))
        else:
            sizes = {name: totals.text_bytes for name, totals in manifest.sources.items()}
            weights = tempered_weights(self.temperature, sizes)
        weights.check_words({name: totals.words for name, totals in manifest.sources.items()})
        return weights

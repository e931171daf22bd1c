"""The weights of sources in a training, and how well its tokenizer encodes each source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.counts.artifact import read_part
from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.weights import (
    Weights,
    explicit_weights,
    parse_temperature,
    parse_weight,
    tempered_weights,
)
from bpe_beam.counts.word_table import string_buffers
from bpe_beam.errors import UsageError
from bpe_beam.settings.train import TrainSettings
from bpe_beam.tokenizer.native_encoder import make_model
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.training.words import weighted_total

if TYPE_CHECKING:
    from bpe_beam.jobs.train.plan import TrainingPlan


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
    def of(settings: TrainSettings) -> WeightRules:
        """Return the weights that the settings name."""
        return WeightRules(
            {name: parse_weight(name, weight) for name, weight in settings.weights},
            None if settings.temperature is None else parse_temperature(settings.temperature),
        )

    @property
    def identity(self) -> dict[str, object]:
        """What a tokenizer depends on; empty without weights and temperature."""
        if self.temperature is not None:
            return {"temperature": f"{self.temperature:f}"}
        return {"weights": dict(sorted(self.numerators.items()))} if self.numerators else {}

    def weights(self, manifest: CountsManifest) -> Weights | None:
        """Return the weights of all sources of a counts folder; None without weight rules.

        Raises:
            UsageError: The weights do not fit the counts.
        """
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


def tokens_by_source(plan: TrainingPlan, tokenizer: Tokenizer) -> dict[str, int | None] | None:
    """Return the number of tokens that the counted words of each source become.

    Special tokens in the text aside, its documents have so many. Each unique word is encoded once.

    Args:
        plan: The job's plan, with counts.
        tokenizer: The trained tokenizer.

    Returns:
        The tokens by source; None for a source with a word that the tokenizer cannot encode. None
        without sources, or where rare words were dropped from the counts.
    """
    assert plan.counts is not None
    recipe, manifest = plan.recipe, plan.counts.manifest
    if manifest.sources is None or any(step.min_count > 1 for step in manifest.filtered or ()):
        return None
    encoder = _native.Encoder(_native.Pipeline([], None, []), make_model(tokenizer.spec))
    ending = recipe.end_of_word_symbol if isinstance(recipe, BpeRecipe) else ""
    tokens: dict[str, int | None] = dict.fromkeys(manifest.sources, 0)
    for part in manifest.parts:
        counted = read_part(plan.storage, plan.counts.folder, manifest, part)
        for source, words in counted.items():
            before = tokens[str(source)]
            more = None if before is None else _tokens(encoder, words, ending)
            tokens[str(source)] = None if before is None or more is None else before + more
    return tokens


def _tokens(encoder: _native.Encoder, words: pa.Table, ending: str) -> int | None:
    """Return the number of tokens of counted words; None if one of them cannot be encoded."""
    texts = words["word"].combine_chunks()
    if ending:  # the tokenizer's normalizer adds it to the words
        import pyarrow.compute as pc  # slow to import: only for such tokenizers

        texts = pc.binary_join_element_wise(
            texts, *(pa.scalar(t, texts.type) for t in (ending, ""))
        )
    data, offsets = string_buffers(texts)
    try:
        _, ends = encoder.encode_batch(data, offsets)
    except _native.MissingSymbolError:
        return None
    return weighted_total(np.diff(ends), words["count"].to_numpy())

"""The number of tokens that the counted words of each source of a training become."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.counts.artifact import read_part
from bpe_beam.counts.word_table import string_buffers
from bpe_beam.jobs.train.plan import TrainingPlan
from bpe_beam.tokenizer.encoding.native_encoder import make_model
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.words import weighted_total
from bpe_beam.training.recipe import BpeRecipe


def tokens_by_source(plan: TrainingPlan, tokenizer: Tokenizer) -> dict[str, int | None] | None:
    """Return the number of tokens that the counted words of each source become.

    Special tokens in the text aside, its documents have so many. Each unique word is encoded once.
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

"""Warnings about the result of a training."""

from __future__ import annotations

from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.jobs.train.summary import bytes_per_token
from bpe_beam.messages import shortened
from bpe_beam.settings.train import TrainingSettings
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.learn import is_nearly_characters
from bpe_beam.training.merges.native_trainer import MAX_TEXT, TrainingResult
from bpe_beam.training.recipe import Recipe

_LONG_TOKEN = 1_000
"""A token of more characters than this is worth a warning."""


def result_warnings(
    settings: TrainingSettings,
    manifest: CountsManifest,
    recipe: Recipe,
    tokenizer: Tokenizer,
    learned: TrainingResult,
) -> list[str]:
    """Return the warnings about the result."""
    warnings = []
    added = [t for t in recipe.special_tokens if t not in manifest.special_tokens]
    if added:
        warnings.append(
            f"{', '.join(added)}: not extracted when the text was counted; where the corpus has "
            "them, they were counted as plain text: count with --special-token to extract them"
        )
    longest = max(tokenizer.vocab.keys() - set(recipe.specials), key=len, default="")
    if len(longest) > _LONG_TOKEN and settings.model != "word_level":
        warnings.append(
            f"the longest token has {len(longest):,} characters, {shortened(longest)}: the text "
            "repeats it; max_token_length limits the length"
        )
    if learned.text_full:
        warnings.append(
            f"the vocabulary has {tokenizer.vocab_size:,} entries, not {settings.vocab_size:,}: "
            f"the merges have {MAX_TEXT:,} bytes in total, which is the limit; set "
            "max_token_length"
        )
    elif settings.model == "wordpiece" and is_nearly_characters(learned):
        warnings.append(
            f"{bytes_per_token(learned):.2f} bytes a token: nearly single characters, since the "
            "likelihood prefers pairs of rare ones; set a higher min_frequency (now "
            f"{settings.min_frequency:,}), or the model prefix_bpe, which is what Hugging Face "
            "calls WordPiece training"
        )
    elif tokenizer.vocab_size < settings.vocab_size:
        noun = "word" if settings.model == "word_level" else "pair"
        warnings.append(
            f"the vocabulary has {tokenizer.vocab_size:,} entries, not {settings.vocab_size:,}: "
            f"no other {noun} is frequent enough"
        )
    return warnings

"""What a training job is to learn: a recipe from its settings and from how words were counted."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bpe_beam.errors import UsageError
from bpe_beam.settings.train import TrainSettings
from bpe_beam.tokenizer.pretokenizers import is_byte_level_name
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.continue_training import (
    check_continued,
    check_same_words,
    continued,
    recipe_like,
)
from bpe_beam.training.native_trainer import Learned
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe, WordPieceRecipe
from bpe_beam.training.tokenizer_parts import check_parts, check_text_steps, tokenizer_of

UNKNOWN = {"prefix_bpe": "[UNK]", "wordpiece": "[UNK]", "word_level": "<unk>"}
"""The unknown token of models that cannot do without, unless told otherwise."""

PREFIX = "##"


def recipe_of(
    settings: TrainSettings,
    normalizer: str,
    pretokenizer: str,
    cut: tuple[str, ...],
    old: Tokenizer | None,
) -> Recipe:
    """Makes the recipe.

    Args:
        settings: What the job was told.
        normalizer: By which the words are made.
        pretokenizer: By which the words are made.
        cut: The special tokens that were cut when counting; they come first.
        old: The tokenizer to continue, if any.

    Raises:
        UsageError: Settings that exclude each other, or that no tokenizer could be made by.
    """
    recipe = _recipe(settings, normalizer, pretokenizer, cut, old)
    if old is not None and isinstance(recipe, BpeRecipe):
        check_continued(old, recipe)
    else:
        check_parts(recipe, normalizer, pretokenizer)
    return recipe


def _recipe(
    settings: TrainSettings,
    normalizer: str,
    pretokenizer: str,
    cut: tuple[str, ...],
    old: Tokenizer | None,
) -> Recipe:
    common: dict[str, Any] = {
        "vocab_size": settings.vocab_size,
        "min_frequency": settings.min_frequency,
        "special_tokens": (*cut, *(t for t in settings.special_tokens if t not in cut)),
        "unk_token": settings.unk_token or UNKNOWN.get(settings.model),
        "template": settings.template or "",
    }
    if settings.model == "word_level":
        return WordLevelRecipe(**common)
    common |= {
        "tie_break": settings.tie_break,
        "initial_alphabet": tuple(dict.fromkeys(settings.initial_alphabet or "")),
        "limit_alphabet": settings.limit_alphabet,
        "max_token_length": settings.max_token_length,
    }
    prefix = settings.continuing_subword_prefix
    if settings.model == "wordpiece":
        return WordPieceRecipe(**common, continuing_subword_prefix=prefix or PREFIX)
    if settings.model == "prefix_bpe":
        return BpeRecipe(
            **common,
            symbols="characters",
            continuing_subword_prefix=prefix or PREFIX,
            for_wordpiece=True,
        )
    if old is not None:
        del common["unk_token"]
        check_same_words(old, normalizer, pretokenizer)
        in_bytes = old.spec.model_reads_bytes
        return recipe_like(old, BpeRecipe(**common, symbols="bytes" if in_bytes else "characters"))
    symbols = settings.symbols
    if symbols is None:
        bytes_wanted = settings.alphabet == "bytes" or is_byte_level_name(pretokenizer)
        symbols = "bytes" if bytes_wanted else "characters"
    recipe = BpeRecipe(
        **common,
        symbols=symbols,  # type: ignore[arg-type]
        alphabet=settings.alphabet,  # type: ignore[arg-type]
        end_of_word_suffix=settings.end_of_word_suffix or "",
        end_of_word_symbol=settings.end_of_word_symbol or "",
        continuing_subword_prefix=prefix or "",
        byte_fallback=settings.byte_fallback,
    )
    check_text_steps(recipe, pretokenizer)
    if recipe.all_bytes and recipe.limit_alphabet is not None and recipe.limit_alphabet < 256:
        raise UsageError(
            f"must be at least 256 with the alphabet of all bytes, got {recipe.limit_alphabet}",
            ("limit_alphabet",),
            "give {alphabet} seen or {symbols} characters with it",
        )
    return recipe


def tokenizer_from(
    learned: Learned, recipe: Recipe, normalizer: str, pretokenizer: str, old: Tokenizer | None
) -> Tokenizer:
    """Makes the tokenizer.

    Args:
        learned: What was learned by the recipe.
        recipe: As `recipe_of` gave it, which has refused what could not be made.
        normalizer: By which the words were made.
        pretokenizer: By which the words were made.
        old: The tokenizer that was continued, if any.
    """
    if old is not None and isinstance(recipe, BpeRecipe):
        return continued(old, learned, recipe)
    return tokenizer_of(learned, recipe, normalizer, pretokenizer)


def least_entries(recipe: Recipe, old: Tokenizer | None) -> int:
    """How many entries there are whatever the words."""
    if old is not None:
        return len(set(recipe.specials).union(old.vocab))
    fixed = 0
    if isinstance(recipe, BpeRecipe):
        fixed = 256 if recipe.all_bytes and recipe.limit_alphabet is None else 0
        fixed += 256 if recipe.byte_fallback else 0
    # A special token of one character may be a symbol of the alphabet already.
    single = fixed > 0
    return max(1, fixed + sum(len(token) > 1 or not single for token in recipe.specials))


def check_vocab_size(recipe: Recipe, old: Tokenizer | None) -> None:
    """Refuses a vocabulary that is too small for any words, before they are counted.

    Raises:
        UsageError: Says how large it must be at least.
    """
    least = least_entries(recipe, old)
    if recipe.vocab_size < least:
        raise UsageError(
            f"must be at least {least:,} (the alphabet and the special tokens alone), got "
            f"{recipe.vocab_size:,}",
            ("vocab_size",),
        )


def identity_of(settings: TrainSettings, recipe: Recipe) -> dict[str, Any]:
    """What the tokenizer depends on, but for the words and the tokenizer that is continued."""
    values = {"model": settings.model, **asdict(recipe)}
    if isinstance(recipe, BpeRecipe):
        # As it is, whether it was told or not.
        values["alphabet"] = "bytes" if recipe.all_bytes else "seen"
    return values

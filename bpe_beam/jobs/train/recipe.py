"""The recipe of a training job: what is trained, by its settings and by how words were counted."""

from __future__ import annotations

from typing import Any

import msgspec

from bpe_beam.errors import UsageError
from bpe_beam.settings.train import TrainSettings
from bpe_beam.tokenizer.pretokenizers import is_byte_level_name
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.continue_training import check_continued, check_same_words, recipe_like
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe, WordPieceRecipe
from bpe_beam.training.tokenizer_parts import check_parts, check_text_steps

_UNKNOWN_TOKENS = {"prefix_bpe": "[UNK]", "wordpiece": "[UNK]", "word_level": "<unk>"}
_WORDPIECE_PREFIX = "##"


def recipe_of(
    settings: TrainSettings,
    normalizer: str,
    pretokenizer: str,
    extracted: tuple[str, ...],
    base: Tokenizer | None,
) -> Recipe:
    """Return the recipe of a training job.

    Args:
        settings: The job's settings.
        normalizer: The normalizer of the words, by name.
        pretokenizer: The pre-tokenizer of the words, by name.
        extracted: The special tokens that counting extracts; they come first.
        base: The tokenizer to continue, if any.

    Raises:
        UsageError: Settings exclude each other, or no tokenizer fits them.
    """
    common: dict[str, Any] = {
        "vocab_size": settings.vocab_size,
        "min_frequency": settings.min_frequency,
        "special_tokens": tuple(dict.fromkeys((*extracted, *settings.special_tokens))),
        "unk_token": settings.unk_token or _UNKNOWN_TOKENS.get(settings.model),
        "template": settings.template or "",
    }
    merging: dict[str, Any] = {
        **common,
        "tie_break": settings.tie_break,
        "initial_alphabet": tuple(dict.fromkeys(settings.initial_alphabet or "")),
        "limit_alphabet": settings.limit_alphabet,
        "max_token_length": settings.max_token_length,
        "continuing_subword_prefix": settings.continuing_subword_prefix or _WORDPIECE_PREFIX,
    }
    recipe: Recipe
    if settings.model == "word_level":
        recipe = WordLevelRecipe(**common)
    elif settings.model == "wordpiece":
        recipe = WordPieceRecipe(**merging)
    elif settings.model == "prefix_bpe":
        recipe = BpeRecipe(**merging, symbols="characters", alphabet="seen", for_wordpiece=True)
    elif base is not None:
        check_same_words(base, normalizer, pretokenizer)
        del merging["unk_token"], merging["continuing_subword_prefix"]
        in_bytes = base.spec.model_reads_bytes
        like = BpeRecipe(**merging, symbols="bytes" if in_bytes else "characters")
        recipe = recipe_like(base, like)
        check_continued(base, recipe)
        return recipe
    else:
        recipe = _bpe_recipe(settings, pretokenizer, merging)
    check_parts(recipe, normalizer, pretokenizer)
    return recipe


def _bpe_recipe(settings: TrainSettings, pretokenizer: str, merging: dict[str, Any]) -> BpeRecipe:
    symbols = settings.symbols
    if symbols is None:
        in_bytes = settings.alphabet == "bytes" or is_byte_level_name(pretokenizer)
        symbols = "bytes" if in_bytes else "characters"
    merging["continuing_subword_prefix"] = settings.continuing_subword_prefix or ""
    recipe = BpeRecipe(
        **merging,
        symbols=symbols,  # type: ignore[arg-type]
        alphabet=settings.alphabet  # type: ignore[arg-type]
        or ("bytes" if symbols == "bytes" else "seen"),
        end_of_word_suffix=settings.end_of_word_suffix or "",
        end_of_word_symbol=settings.end_of_word_symbol or "",
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


def least_entries(recipe: Recipe, base: Tokenizer | None) -> int:
    """Return the number of entries that the vocabulary has for any words.

    Args:
        recipe: What is trained.
        base: The tokenizer to continue, if any.
    """
    if base is not None:
        return len(set(recipe.specials).union(base.vocab))
    fixed = 0
    if isinstance(recipe, BpeRecipe):
        fixed = 256 if recipe.all_bytes and recipe.limit_alphabet is None else 0
        fixed += 256 if recipe.byte_fallback else 0
    # A special token of one character may be a symbol of the alphabet already.
    single = fixed > 0
    return max(1, fixed + sum(len(token) > 1 or not single for token in recipe.specials))


def check_vocab_size(recipe: Recipe, base: Tokenizer | None) -> None:
    """Refuse a vocabulary that is too small for any words, before they are counted.

    Args:
        recipe: What is trained.
        base: The tokenizer to continue, if any.

    Raises:
        UsageError: Says how large it must be at least.
    """
    least = least_entries(recipe, base)
    if recipe.vocab_size < least:
        raise UsageError(
            f"must be at least {least:,} (the alphabet and the special tokens alone), got "
            f"{recipe.vocab_size:,}",
            ("vocab_size",),
        )


def identity_of(settings: TrainSettings, recipe: Recipe) -> dict[str, Any]:
    """Return what the tokenizer depends on, except the words and the base tokenizer.

    Args:
        settings: The job's settings; the recipe has all that count, except the model's name.
        recipe: What is trained.
    """
    return {"model": settings.model, **msgspec.structs.asdict(recipe)}

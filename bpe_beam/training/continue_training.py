"""More merges for a tokenizer that exists: its ids stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from msgspec import structs

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.added_tokens import AddedToken
from bpe_beam.tokenizer.models import BPE, ErrorLocation
from bpe_beam.tokenizer.normalizers import normalizer_from_name
from bpe_beam.tokenizer.pretokenizers import ends_in_bytes, pretokenizer_from_name, steps_of
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.initial_vocabulary import merges_of
from bpe_beam.training.native_trainer import Learned, number
from bpe_beam.training.recipe import BpeRecipe

# Ids that may be missing without harm.
_SPARE_IDS = 1_000_000


def recipe_like(tokenizer: Tokenizer, recipe: BpeRecipe) -> BpeRecipe:
    """A recipe with those settings that a tokenizer decides by itself.

    Args:
        tokenizer: What is continued.
        recipe: The other settings: sizes, tie rule, special tokens, initial alphabet.

    Raises:
        UsageError: The tokenizer is not BPE, or of a kind that cannot be continued.
    """
    spec = tokenizer.spec
    model = spec.model
    if not isinstance(model, BPE):
        raise UsageError(f"must be a tokenizer of BPE, got {model.json_type}", ("continue_from",))
    in_bytes = spec.model_reads_bytes
    if ends_in_bytes(spec.pre_tokenizer) and not in_bytes:
        raise UsageError(
            "must not be a byte-level tokenizer with decorated symbols, or without all bytes and "
            "with an unknown token",
            ("continue_from",),
        )
    if tokenizer.max_id > 2 * tokenizer.vocab_size + _SPARE_IDS:
        raise UsageError(
            f"must have few unused ids, got {tokenizer.vocab_size:,} ids up to "
            f"{tokenizer.max_id:,}",
            ("continue_from",),
        )
    for token in spec.added_tokens:
        if len(token.content) == 1 and token.content not in model.vocab:
            raise UsageError(
                "must have no added token of one character, which training could also make, got "
                f"{token.content!r}",
                ("continue_from",),
            )
    if recipe.limit_alphabet is not None:
        raise UsageError("exclude each other", ("limit_alphabet", "continue_from"))
    return replace(
        recipe,
        symbols="bytes" if in_bytes else "characters",
        alphabet="seen",  # all that the tokenizer has, and what is new
        unk_token=model.unk_token,
        continuing_subword_prefix=model.continuing_subword_prefix or "",
        end_of_word_suffix=model.end_of_word_suffix or "",
        byte_fallback=model.byte_fallback,
    )


def check_same_words(tokenizer: Tokenizer, normalizer: str, pretokenizer: str) -> None:
    """Refuses words that the tokenizer would not have made.

    Raises:
        UsageError: Its normalizer or its pre-tokenizer differs from the one named.
    """
    spec = tokenizer.spec
    if normalizer_from_name(normalizer) != spec.normalizer:
        raise UsageError(
            f"must be a tokenizer with the normalizer of the words, {normalizer!r}",
            ("continue_from",),
        )
    in_bytes = spec.model_reads_bytes
    wanted = pretokenizer_from_name(pretokenizer, byte_level=in_bytes)
    same = wanted == spec.pre_tokenizer or (
        # The same pattern in another spelling.
        steps_of(wanted, last_as_bytes=in_bytes)
        == steps_of(spec.pre_tokenizer, last_as_bytes=in_bytes)
    )
    if not same:
        raise UsageError(
            f"must be a tokenizer with the pre-tokenizer of the words, {pretokenizer!r}",
            ("continue_from",),
        )


def check_continued(tokenizer: Tokenizer, recipe: BpeRecipe) -> None:
    """Refuses, before anything is learned, a tokenizer that could not be continued.

    Args:
        tokenizer: What is continued.
        recipe: As `recipe_like` gave it.

    Raises:
        UsageError: What `continued` would refuse.
    """
    ids = number(tokenizer.vocab, recipe.specials)
    continued(tokenizer, Learned(ids, merges_of(tokenizer), np.zeros(0, np.int64)), recipe)


def continued(tokenizer: Tokenizer, learned: Learned, recipe: BpeRecipe) -> Tokenizer:
    """The tokenizer with what was learned; all its other parts stay.

    As soon as its model has more entries or merges it has the added tokens, too: a merge may make
    one that the text spells, and other programs number those that a model lacks anew.
    """
    spec = tokenizer.spec
    model = spec.model
    assert isinstance(model, BPE)
    grown = (len(learned.vocab), len(learned.merges)) > (len(tokenizer.vocab), len(model.merges))
    known = {token.content for token in spec.added_tokens}
    new = [token for token in recipe.specials if token not in known]
    added = [AddedToken(learned.vocab[token], token) for token in new]
    result = TokenizerSpec(
        structs.replace(model, vocab=learned.vocab, merges=learned.merges) if grown else model,
        (*spec.added_tokens, *sorted(added, key=lambda token: token.id)),
        spec.normalizer,
        spec.pre_tokenizer,
        spec.post_processor,
        spec.decoder,
    )
    result.check(ErrorLocation())
    return Tokenizer(result)

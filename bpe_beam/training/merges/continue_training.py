"""More merges for a base tokenizer, whose ids stay."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from bpe_beam.errors import require
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import BPE, ErrorLocation
from bpe_beam.tokenizer.components.normalizers import normalizer_from_name
from bpe_beam.tokenizer.components.pretokenizers import (
    ends_in_bytes,
    pretokenizer_from_name,
    steps_of,
)
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.initial_vocabulary import assign_ids
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.recipe import BpeRecipe

# Number of unused ids that do no harm.
_SPARE_IDS = 1_000_000


def recipe_like(base: Tokenizer, recipe: BpeRecipe) -> BpeRecipe:
    """Return a recipe with those settings that a base tokenizer determines."""
    spec, model = base.spec, base.spec.model
    in_bytes = spec.model_reads_bytes
    _require(isinstance(model, BPE), f"a tokenizer of BPE, got {model.json_type}")
    assert isinstance(model, BPE)
    _require(
        in_bytes or not ends_in_bytes(spec.pre_tokenizer),
        "no byte-level tokenizer with decorated symbols, and none without all bytes and with an "
        "unknown token",
    )
    _require(
        base.max_id <= 2 * base.vocab_size + _SPARE_IDS,
        f"a tokenizer with few unused ids, got {base.vocab_size:,} ids up to {base.max_id:,}",
    )
    for token in spec.added_tokens:
        _require(
            len(token.content) > 1 or token.content in model.vocab,
            "a tokenizer without added tokens of one character, which training could also make, "
            f"got {token.content!r}",
        )
    require(recipe.limit_alphabet is None, "exclude each other", "limit_alphabet", "continue_from")
    return replace(
        recipe,
        symbols="bytes" if in_bytes else "characters",
        alphabet="seen",  # the alphabet of the tokenizer, and new symbols
        unk_token=model.unk_token,
        continuing_subword_prefix=model.continuing_subword_prefix or "",
        end_of_word_suffix=model.end_of_word_suffix or "",
        byte_fallback=model.byte_fallback,
    )


def check_same_words(base: Tokenizer, normalizer: str, pretokenizer: str) -> None:
    """Refuse words of another normalizer or pre-tokenizer than a base tokenizer has."""
    spec = base.spec
    _require(
        normalizer_from_name(normalizer) == spec.normalizer,
        f"a tokenizer with the normalizer of the words, {normalizer!r}",
    )
    in_bytes = spec.model_reads_bytes
    wanted = pretokenizer_from_name(pretokenizer, byte_level=in_bytes)
    _require(
        wanted == spec.pre_tokenizer
        # The same pattern may have several spellings.
        or steps_of(wanted, last_as_bytes=in_bytes)
        == steps_of(spec.pre_tokenizer, last_as_bytes=in_bytes),
        f"a tokenizer with the pre-tokenizer of the words, {pretokenizer!r}",
    )


def check_continued(base: Tokenizer, recipe: BpeRecipe) -> None:
    """See `continued`: refuse what it would refuse, before anything is learned."""
    ids = assign_ids(base.vocab, recipe.specials)
    continued(base, TrainingResult(ids, tuple(base.merges), np.zeros(0, np.int64)), recipe)


def continued(base: Tokenizer, learned: TrainingResult, recipe: BpeRecipe) -> Tokenizer:
    """Return a base tokenizer with more merges; its other parts stay.

    As soon as its model has more entries or merges it has the added tokens too: other programs
    renumber those that a model lacks.
    """
    spec, model = base.spec, base.spec.model
    assert isinstance(model, BPE)
    grown = (len(learned.vocab), len(learned.merges)) > (len(base.vocab), len(model.merges))
    known = {token.content for token in spec.added_tokens}
    new = [token for token in recipe.specials if token not in known]
    added = [AddedToken(learned.vocab[token], token) for token in new]
    result = replace(
        spec,
        model=replace(model, vocab=learned.vocab, merges=learned.merges) if grown else model,
        added_tokens=(*spec.added_tokens, *sorted(added, key=lambda token: token.id)),
    )
    result.check(ErrorLocation())
    return Tokenizer(result)


def _require(condition: bool, expected: str) -> None:
    require(condition, f"must be {expected}", "continue_from")

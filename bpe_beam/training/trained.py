"""The tokenizer that training gives."""

from __future__ import annotations

from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.learning import Learned
from bpe_beam.training.recipe import BpeRecipe


def tokenizer_of(learned: Learned, recipe: BpeRecipe) -> Tokenizer:
    """The tokenizer that was learned, with the recipe's special tokens."""
    return Tokenizer.from_learned(list(learned.vocab), list(learned.merges), recipe.specials)

"""Merges from word counts, over the native learner: BPE, WordPiece, and more merges for BPE."""

from __future__ import annotations

from dataclasses import replace

from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.initial_vocabulary import (
    begin_vocabulary,
    merges_of,
    needs_seen,
    see_for,
)
from bpe_beam.training.native_trainer import Learned, Progress, learn
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.training.words import Words


def learn_merges(
    words: Words,
    recipe: BpeRecipe | WordPieceRecipe,
    on_progress: Progress | None = None,
    *,
    base_tokenizer: Tokenizer | None = None,
) -> Learned:
    """Learn a vocabulary by merges; exactly that of the functions in the reference modules.

    A base tokenizer encodes the words first. New special tokens follow its ids, then the characters
    that it lacks, then what is learned.

    Args:
        words: Unique words; for `first_seen` in the order of their first occurrence.
        recipe: What is trained; to continue a tokenizer, as `recipe_like` returned it. Then its
            `vocab_size` counts all entries, those of added tokens too.
        on_progress: Called with the number of merges learned since the last call.
        base_tokenizer: The BPE tokenizer to continue; None starts from the alphabet.

    Returns:
        All entries and all merges, those of the base tokenizer first. WordPiece encodes without
        the merges.

    Raises:
        UsageError: The vocabulary is smaller than what it begins with, or a word contains the
            end-of-word symbol.
        OverflowError: The sum of counts is beyond 64 bits.
    """
    seen = see_for(words, recipe) if needs_seen(recipe, base_tokenizer) else None
    vocabulary = begin_vocabulary(recipe, seen, base_tokenizer)
    learned = learn(vocabulary.symbols(words), vocabulary.ids, recipe, on_progress)
    if base_tokenizer is None:
        return learned
    return replace(learned, merges=(*merges_of(base_tokenizer), *learned.merges))

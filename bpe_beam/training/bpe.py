"""BPE from word counts, over the native learner."""

from __future__ import annotations

from bpe_beam.training.initial_vocabulary import needs_seen, see_for, start_of
from bpe_beam.training.native_trainer import Learned, Progress, learn
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.training.words import Words


def learn_bpe(words: Words, recipe: BpeRecipe, on_progress: Progress | None = None) -> Learned:
    """Learns merges; exactly those of `training.reference.learn_bpe`.

    Args:
        words: Unique words; for `first_seen` in the order of their first occurrence.
        recipe: The settings.
        on_progress: Called with how many more merges have been learned.

    Raises:
        UsageError: The vocabulary is smaller than the special tokens and the alphabet, or a word
            holds the end-of-word symbol.
        OverflowError: Counts whose sum is beyond 64 bits.
    """
    start = start_of(recipe, see_for(words, recipe) if needs_seen(recipe) else None)
    return learn(start.symbols(words), start.ids, recipe, on_progress)

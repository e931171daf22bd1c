"""WordPiece by likelihood from word counts, over the native learner.

What Hugging Face calls WordPiece training is BPE with a prefix: `bpe.py`.
"""

from __future__ import annotations

from bpe_beam.training.initial_vocabulary import see_for, start_of
from bpe_beam.training.native_trainer import Learned, Progress, learn
from bpe_beam.training.recipe import WordPieceRecipe
from bpe_beam.training.words import Words

MANY_MERGES = 1_000
"""Fewer merges leave most words in pieces, whatever the score."""

MOST_UNJOINED = 1 / 3
"""Of the boundaries within words, how many may be left; measured in docs/algorithm.md."""


def is_nearly_characters(learned: Learned) -> bool:
    """Whether many merges joined little of the words, as the likelihood does by default.

    The frequent words are in pieces then, and rare sequences of rare characters are entries.
    """
    totals = learned.totals
    if totals is None or totals.tokens is None or len(learned.merges) < MANY_MERGES:
        return False
    return totals.tokens - totals.words > MOST_UNJOINED * (totals.symbols - totals.words)


def learn_wordpiece(
    words: Words, recipe: WordPieceRecipe, on_progress: Progress | None = None
) -> Learned:
    """Learns a vocabulary; exactly that of `reference_wordpiece.learn_wordpiece`.

    Args:
        words: Unique words; for `first_seen` in the order of their first occurrence.
        recipe: The settings.
        on_progress: Called with how many more merges have been learned.

    Returns:
        The vocabulary, and the merges that made it; WordPiece encodes without them.

    Raises:
        UsageError: The vocabulary is smaller than the special tokens and the alphabet.
        OverflowError: Counts whose sum is beyond 64 bits.
    """
    start = start_of(recipe, see_for(words, recipe))
    return learn(start.symbols(words), start.ids, recipe, on_progress)

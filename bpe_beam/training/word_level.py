"""A word-level vocabulary from word counts."""

from __future__ import annotations

import numpy as np

from bpe_beam.training.initial_vocabulary import assign_ids, require_room
from bpe_beam.training.native_trainer import TrainingResult, WordTotals
from bpe_beam.training.recipe import WordLevelRecipe
from bpe_beam.training.words import Words


def learn_word_level(words: Words, recipe: WordLevelRecipe) -> TrainingResult:
    """Return the special tokens and the most frequent words, ties by text.

    Words' bytes sort as their characters do. Only words as frequent as the last that can be taken
    become strings.

    Args:
        words: Unique words.
        recipe: What is trained.

    Raises:
        UsageError: The vocabulary is smaller than the special tokens.
    """
    ids = assign_ids({}, recipe.specials)
    require_room(recipe.vocab_size, len(ids))
    # Some words may be special tokens, which have ids already.
    room = recipe.vocab_size
    least = recipe.min_frequency
    if len(words.counts) > room:
        rank = len(words.counts) - room
        least = max(least, int(np.partition(words.counts, rank)[rank]))
    entries = []
    for word in np.flatnonzero(words.counts >= least).tolist():
        text = words.data[words.offsets[word] : words.offsets[word + 1]].tobytes()
        entries.append((-int(words.counts[word]), text))
    entries.sort()
    taken = [text.decode() for _, text in entries if text.decode() not in ids]
    vocab = assign_ids(ids, taken[: recipe.vocab_size - len(ids)])
    totals = WordTotals(words.total, words.total_bytes, words.total, words.total)
    return TrainingResult(vocab, (), np.zeros(0, np.int64), totals=totals)

"""A word-level vocabulary from word counts."""

from __future__ import annotations

import numpy as np

from bpe_beam.training.native_trainer import Learned, WordTotals, check_size, number
from bpe_beam.training.recipe import WordLevelRecipe
from bpe_beam.training.words import Words, weighted_total


def learn_word_level(words: Words, recipe: WordLevelRecipe) -> Learned:
    """Takes the most frequent words, ties by text; as `reference_wordpiece.learn_word_level`.

    Words' bytes sort as their characters do. Only words as frequent as the last that can be taken
    become strings.

    Raises:
        UsageError: The vocabulary is smaller than the special tokens.
    """
    ids = number({}, recipe.specials)
    check_size(recipe.vocab_size, len(ids))
    # Some words may be special tokens, which stand there already.
    room = recipe.vocab_size
    least = recipe.min_frequency
    if len(words.counts) > room:
        place = len(words.counts) - room
        least = max(least, int(np.partition(words.counts, place)[place]))
    entries = []
    for word in np.flatnonzero(words.counts >= least).tolist():
        text = words.data[words.offsets[word] : words.offsets[word + 1]].tobytes()
        entries.append((-int(words.counts[word]), text))
    entries.sort()
    taken = [text.decode() for _, text in entries if text.decode() not in ids]
    vocab = number(ids, taken[: recipe.vocab_size - len(ids)])
    count = weighted_total(np.ones_like(words.counts), words.counts)
    totals = WordTotals(count, words.total_bytes, count, count)
    return Learned(vocab, (), np.zeros(0, np.int64), totals=totals)

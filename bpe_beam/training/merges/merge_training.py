"""Merges, learned in this process from words in memory."""

from __future__ import annotations

from collections.abc import Callable

from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges import native_trainer
from bpe_beam.training.merges.initial_vocabulary import begin_vocabulary, needs_seen
from bpe_beam.training.merges.symbols import find_symbols
from bpe_beam.training.merges.words import Words, require_positions
from bpe_beam.training.recipe import MergingRecipe


def learn_merges(
    words: Words,
    recipe: MergingRecipe,
    on_progress: Callable[[int], None] | None = None,
    base_tokenizer: Tokenizer | None = None,
) -> native_trainer.TrainingResult:
    """Return all entries and merges, beginning with the base tokenizer; see `learn`."""
    seen = find_symbols(words, recipe) if needs_seen(recipe, base_tokenizer) else None
    start = begin_vocabulary(recipe, seen, base_tokenizer)
    vocabulary = native_trainer.Vocabulary(start, recipe)
    symbols = start.symbols(words)
    require_positions(symbols.size)
    learner = native_trainer.make_learner(vocabulary, symbols, recipe.min_frequency)
    del symbols  # which take as much memory as the learner's copy
    before = learner.token_count
    merges = native_trainer.find_merges(learner, on_progress)
    vocabulary.add(merges.rows, merges.counts)
    vocabulary.text_full = merges.text_full
    vocabulary.totals = native_trainer.WordTotals(
        words.total, words.total_bytes, before, learner.token_count
    )
    return vocabulary.result()

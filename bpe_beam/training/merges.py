"""Merges from word counts in this process: BPE, WordPiece, and more merges for a base tokenizer."""

from __future__ import annotations

from bpe_beam.errors import require
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training import trainer_limits
from bpe_beam.training.initial_vocabulary import begin_vocabulary, needs_seen
from bpe_beam.training.native_trainer import (
    Progress,
    TrainingResult,
    Vocabulary,
    WordTotals,
    find_merges,
    make_learner,
)
from bpe_beam.training.recipe import MergingRecipe
from bpe_beam.training.seen_symbols import find_symbols
from bpe_beam.training.symbols import WordSymbols
from bpe_beam.training.trainer_limits import size_of
from bpe_beam.training.words import Words


def learn_merges(
    words: Words,
    recipe: MergingRecipe,
    on_progress: Progress | None = None,
    *,
    base_tokenizer: Tokenizer | None = None,
) -> TrainingResult:
    """Learn a vocabulary by merges; docs/algorithm.md defines them.

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
        UsageError: The vocabulary is smaller than what it begins with, the words have more symbols
            than one trainer can process, or a word contains the end-of-word symbol.
        OverflowError: The sum of counts is beyond 64 bits.
    """
    seen = find_symbols(words, recipe) if needs_seen(recipe, base_tokenizer) else None
    start = begin_vocabulary(recipe, seen, base_tokenizer)
    vocabulary = Vocabulary(start, recipe)
    symbols = start.symbols(words)
    _check_positions(symbols)
    learner = make_learner(vocabulary, symbols, recipe.min_frequency)
    del symbols  # which take as much memory as the learner's copy
    before = learner.token_count
    found = find_merges(learner, on_progress)
    vocabulary.add(found.rows, found.counts)
    vocabulary.text_full = found.text_full
    vocabulary.totals = WordTotals(words.total, words.total_bytes, before, learner.token_count)
    return vocabulary.result()


def _check_positions(symbols: WordSymbols) -> None:
    positions, most = size_of(symbols).positions, trainer_limits.MAX_POSITIONS
    require(
        positions <= most,
        f"the words have {positions:,} symbols and ends, and one trainer can process {most:,}",
        remedy="set {merge_rounds} to distributed, or use fewer words",
    )

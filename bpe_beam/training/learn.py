"""Training in this process: merges of BPE and WordPiece, words of word level, and pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from bpe_beam import _native
from bpe_beam.counts.weights import MAX_TOTAL, Weights
from bpe_beam.counts.word_table import weighted_total
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.encoding.native_encoder import make_model
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges import native_trainer
from bpe_beam.training.merges.initial_vocabulary import assign_ids, require_room
from bpe_beam.training.merges.merge_training import learn_merges
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import (
    MinGramRecipe,
    PieceRecipe,
    Recipe,
    UnigramRecipe,
    WordLevelRecipe,
    WordPieceRecipe,
)
from bpe_beam.training.tokenizer_parts import tokenizer_of

if TYPE_CHECKING:
    from bpe_beam.training.unigram.passes import PieceTraining

# Fewer merges leave most words split, whatever the score.
_MANY_MERGES = 1_000
# The maximum share of the boundaries within words that no merge joins, as measured in
# docs/algorithm.md.
_MAXIMUM_UNJOINED = 1 / 3

_ENCODED_WORDS = 1 << 20

_BPE_TIME = (0.0, 0.001, 0.01, 0.03, 0.1, 0.4, 1.0), (0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.95)
_LIKELIHOOD_TIME = (0.0, 0.1, 1.0), (0.4, 0.5, 0.95)
"""Shares of the merges, and the shares of the time that are over when these are learned."""


def share_of_time(recipe: Recipe, share_of_merges: float) -> float:
    """Return the usual share of a training's time after a share of its merges."""
    if share_of_merges <= 0:
        return 0.0
    table = _LIKELIHOOD_TIME if isinstance(recipe, WordPieceRecipe) else _BPE_TIME
    return float(np.interp(share_of_merges, *table))


def learn(
    words: Words,
    recipe: Recipe,
    on_progress: Callable[[int], None] | None = None,
    *,
    base_tokenizer: Tokenizer | None = None,
    threads: int = 1,
) -> native_trainer.TrainingResult:
    """Learn a vocabulary from words; docs/algorithm.md defines the merges and the pieces.

    A base tokenizer encodes the words first. New special tokens follow its ids, then the characters
    that it lacks, then what is learned. `on_progress` is called after some merges, with the number
    of merges since the last call; for `UnigramRecipe`, after each pass over the words. Only pieces
    are learned on several threads.

    Returns:
        All entries and all merges, beginning with the base tokenizer. WordPiece encodes without
        the merges.
    """
    if isinstance(recipe, WordLevelRecipe):
        return _learn_word_level(words, recipe)
    if isinstance(recipe, UnigramRecipe):
        from bpe_beam.training.unigram.expectation import train_unigram

        learned = train_unigram(words, recipe, on_progress, threads=threads)
        return replace(learned, totals=totals_of(model_of(learned, recipe), words))
    if isinstance(recipe, MinGramRecipe):
        from bpe_beam.training.unigram.fewest_tokens import train_mingram

        learned = train_mingram(words, recipe, on_progress, threads=threads)
        return replace(learned, totals=totals_of(model_of(learned, recipe), words))
    return learn_merges(words, recipe, on_progress, base_tokenizer)


def piece_training(recipe: PieceRecipe, threads: int = 1) -> PieceTraining:
    """Return the decisions of a training of pieces between its passes over the words."""
    if isinstance(recipe, UnigramRecipe):
        from bpe_beam.training.unigram.expectation import UnigramTraining

        return UnigramTraining(recipe, threads)
    from bpe_beam.training.unigram.fewest_tokens import MinGramTraining

    return MinGramTraining(recipe)


def _learn_word_level(words: Words, recipe: WordLevelRecipe) -> native_trainer.TrainingResult:
    """Return the special tokens and the most frequent words, ties by text.

    Words' bytes sort as their characters do. Only words as frequent as the last that can be taken
    become strings.
    """
    ids = assign_ids({}, recipe.specials)
    require_room(recipe.vocab_size, len(ids))
    # Some words may be special tokens, which have ids already.
    room = recipe.vocab_size
    minimum = recipe.min_frequency
    if len(words.counts) > room:
        rank = len(words.counts) - room
        minimum = max(minimum, int(np.partition(words.counts, rank)[rank]))
    entries = sorted(
        (-int(words.counts[word]), words.word(word))
        for word in np.flatnonzero(words.counts >= minimum).tolist()
    )
    texts = (text.decode() for _, text in entries)
    taken = [text for text in texts if text not in ids]
    vocab = assign_ids(ids, taken[: recipe.vocab_size - len(ids)])
    totals = native_trainer.WordTotals(words.total, words.total_bytes, words.total, words.total)
    return native_trainer.TrainingResult(vocab, (), np.zeros(0, np.int64), totals=totals)


def model_of(learned: native_trainer.TrainingResult, recipe: PieceRecipe) -> _native.Model:
    """Return the model of a vocabulary of pieces, which any number of threads may use."""
    return make_model(tokenizer_of(learned, recipe, "none", "none").spec)


def totals_of(model: _native.Model, words: Words) -> native_trainer.WordTotals:
    """Return the number of tokens that words become with a model of pieces."""
    # Without a cache, since no word occurs twice; and some words at a time, for memory.
    encoder = _native.Encoder(_native.Pipeline([], None, []), model, 0)
    tokens = 0
    for begin in range(0, len(words.counts), _ENCODED_WORDS):
        offsets = words.offsets[begin : begin + _ENCODED_WORDS + 1]
        data = words.data[offsets[0] : offsets[-1]]
        _, ends = encoder.encode_batch(data, offsets - offsets[0])
        tokens += weighted_total(np.diff(ends), words.counts[begin : begin + _ENCODED_WORDS])
    return native_trainer.WordTotals(words.total, words.total_bytes, tokens, tokens)


def is_nearly_characters(learned: native_trainer.TrainingResult) -> bool:
    """Return whether many merges joined little of the words, as WordPiece's likelihood often does.

    Then the frequent words are split, and rare sequences of rare characters are entries.
    """
    totals = learned.totals
    if totals is None or totals.tokens is None or len(learned.merges) < _MANY_MERGES:
        return False
    return totals.tokens - totals.words > _MAXIMUM_UNJOINED * (totals.symbols - totals.words)


def weighted_recipe(recipe: Recipe, weights: Weights | None) -> Recipe:
    """Return the recipe for weighted counts, whose `min_frequency` is in weighted units."""
    if weights is None or weights.unit == 1:
        return recipe
    min_frequency = recipe.min_frequency * weights.unit
    if min_frequency > MAX_TOTAL:
        raise UsageError(
            f"must be at most {MAX_TOTAL // weights.unit:,} with these weights, got "
            f"{recipe.min_frequency:,}",
            ("min_frequency",),
        )
    return replace(recipe, min_frequency=min_frequency)

"""The training of `mingram`: the pieces of BPE that the shortest spellings use.

docs/algorithm.md has the definition. The score of a piece is a constant that outweighs all else, so
that the spelling with the fewest tokens wins, and among equally many the likeliest.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.training.merges.merge_training import learn_merges
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import BpeRecipe, MinGramRecipe
from bpe_beam.training.unigram.passes import (
    PiecePass,
    PieceState,
    Wide,
    narrowed,
    train,
    widened,
)
from bpe_beam.training.unigram.result import SCORE_UNIT, chosen_pieces, result_of
from bpe_beam.training.unigram.segments import Alphabet, kept_characters, segments_of

_TOKEN_COST = 64  # of each token of a spelling, as a natural logarithm
_PASSES = 2  # of best paths, before the least frequent pieces are dropped and after


class MinGramTraining(NamedTuple):
    """A `PieceTraining`: best paths, one pruning, and best paths again."""

    recipe: MinGramRecipe

    def seeds(self, alphabet: Alphabet, learned: TrainingResult) -> PieceState:
        """Return the characters and the tokens of BPE, each with the count of its last merge."""
        seeds = {character.encode(): count for character, count in alphabet.characters.items()}
        for (left, right), count in zip(learned.merges, learned.counts.tolist(), strict=True):
            if left + right not in self.recipe.reserved:
                seeds[(left + right).encode()] = count
        texts = sorted(seeds)
        counts = np.array([seeds[text] for text in texts], np.int64)
        return PieceState.of_seeds(_native.Pieces(texts), widened(counts))

    def next_pass(self, state: PieceState) -> PiecePass | None:
        """See `PieceTraining`."""
        if state.passes == 2 * _PASSES:
            return None
        return PiecePass(state.pieces, scores=token_scores(narrowed(state.counts)))

    def after(self, state: PieceState, sums: Wide) -> PieceState:
        """See `PieceTraining`."""
        pieces = state.pieces
        if state.passes + 1 == _PASSES:
            kept = np.zeros(len(pieces), np.uint8)
            kept[chosen_pieces(pieces.texts(), narrowed(sums).tolist(), self.recipe)] = 1
            pieces, sums = pieces.subset(kept), sums[kept != 0]
        return state.after(pieces, sums, np.zeros(len(pieces), np.uint64))

    def result(self, state: PieceState) -> TrainingResult:
        """See `PieceTraining`."""
        counts = narrowed(state.counts)
        rows = zip(
            state.pieces.texts(), counts.tolist(), token_scores(counts).tolist(), strict=True
        )
        pieces = {text: (count, score) for text, count, score in rows}
        return result_of(pieces, self.recipe, state.sizes)


def train_mingram(
    words: Words,
    recipe: MinGramRecipe,
    on_merges: Callable[[int], None] | None = None,
    *,
    threads: int = 1,
) -> TrainingResult:
    """Learn pieces from words; `on_merges` is called with the number of more merges of BPE."""
    alphabet = kept_characters(words, recipe)
    segments = segments_of(words, alphabet, recipe)
    in_words = Words(*segments.columns()[:3])
    learned = learn_merges(in_words, merging_recipe(alphabet, recipe), on_merges)
    del in_words
    training = MinGramTraining(recipe)
    return train(training, training.seeds(alphabet, learned), segments, threads)


def merging_recipe(alphabet: Alphabet, recipe: MinGramRecipe) -> BpeRecipe:
    """Return the recipe of the BPE that finds the first pieces."""
    characters = tuple(alphabet.characters)
    room = recipe.vocab_size - len(recipe.reserved) - len(characters)
    return BpeRecipe(
        len(characters) + floor(room * Fraction(recipe.overshoot_factor)),
        symbols="characters",
        initial_alphabet=characters,
        max_token_length=recipe.max_piece_length + 1,
    )


def token_scores(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the score of each piece in `SCORE_UNIT`, by how often the best paths have it."""
    logs = _logs(np.maximum(counts, 1)) - _logs(counts.sum(keepdims=True))
    return np.rint(logs * SCORE_UNIT).astype(np.int64) - _TOKEN_COST * SCORE_UNIT


def _logs(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    bits = _native.exact_log(counts.astype(np.float64).view(np.uint64))
    return bits.view(np.float64)

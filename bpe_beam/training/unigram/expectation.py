"""The training of `unigram`: expectation maximization, and pruning of the pieces that matter least.

docs/algorithm.md has the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import UnigramRecipe
from bpe_beam.training.unigram.passes import PiecePass, PieceState, Wide, narrowed, train
from bpe_beam.training.unigram.result import SCORE_UNIT, chosen_pieces, result_of
from bpe_beam.training.unigram.segments import kept_characters, segments_of

_PATH_UNIT = 2.0**24  # scores of paths are integers in this part of one


class UnigramTraining(NamedTuple):
    """A `PieceTraining`: some steps of expectation maximization, a pruning, and again."""

    recipe: UnigramRecipe
    threads: int = 1

    @property
    def _desired(self) -> int:
        return self.recipe.vocab_size * 11 // 10

    def seeds(self, words: Words) -> tuple[PieceState, _native.Segments]:
        """Return the first pieces of words, and the segments that have them."""
        recipe = self.recipe
        alphabet = kept_characters(words, recipe)
        segments = segments_of(words, alphabet, recipe)
        pieces, weights = segments.seeds(
            alphabet.points, alphabet.counts, recipe.max_piece_length, recipe.seed_size,
            recipe.reserved, self.threads,
        )  # fmt: skip
        return PieceState.of_seeds(pieces, weights), segments

    def _prunes(self, state: PieceState) -> bool:
        """Whether the next pass is for a pruning."""
        steps = self.recipe.sub_iterations
        return state.passes % (steps + 1) == steps

    def next_pass(self, state: PieceState) -> PiecePass | None:
        """See `PieceTraining`."""
        if not self._prunes(state):
            first = state.passes == 0
            shares = _native.shares(state.counts) if first else _native.exact_exp(state.scores)
            return PiecePass(state.pieces, probabilities=shares)
        if len(state.pieces) <= self._desired:
            return None
        return PiecePass(state.pieces, scores=_units_of(state.scores, _PATH_UNIT))

    def after(self, state: PieceState, sums: Wide) -> PieceState:
        """See `PieceTraining`."""
        pieces, counts = state.pieces, state.counts
        if not self._prunes(state):
            kept, counts, scores = pieces.estimate(sums)
            return state.after(pieces if kept.all() else pieces.subset(kept), counts, scores)
        share = Fraction(self.recipe.shrinking_factor)
        kept = pieces.prune(
            _units_of(state.scores, _PATH_UNIT), narrowed(sums), counts,
            self._desired, max(self._desired, floor(len(pieces) * share)), self.threads,
        )  # fmt: skip
        chosen = kept != 0
        return state.after(pieces.subset(kept), counts[chosen], state.scores[chosen])

    def result(self, state: PieceState) -> TrainingResult:
        """See `PieceTraining`."""
        texts = state.pieces.texts()
        rounded = _units_of(state.scores, SCORE_UNIT).tolist()
        whole = [(high << 64) + low for low, high in state.counts.tolist()]
        chosen = chosen_pieces(texts, whole, self.recipe)
        pieces = {texts[i]: (whole[i], rounded[i]) for i in chosen}
        return result_of(pieces, self.recipe, state.sizes)


def train_unigram(
    words: Words,
    recipe: UnigramRecipe,
    on_pass: Callable[[int], None] | None = None,
    *,
    threads: int = 1,
) -> TrainingResult:
    """Learn pieces from words; `on_pass` is called after each pass over the segments."""
    training = UnigramTraining(recipe, threads)
    return train(training, *training.seeds(words), threads, on_pass)


def _units_of(scores: npt.NDArray[np.uint64], unit: float) -> npt.NDArray[np.int64]:
    """Return scores, which are bits of doubles, as whole numbers of a unit."""
    return np.rint(scores.view(np.float64) * unit).astype(np.int64)

"""The training of `unigram`: expectation maximization, and pruning of the pieces that matter least.

docs/algorithm.md has the definition. A pass over the segments returns integers, whose sum does not
depend on the order of the segments; between the passes this module decides with them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor

import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import UnigramRecipe
from bpe_beam.training.unigram.result import SCORE_UNIT, chosen_pieces, result_of
from bpe_beam.training.unigram.segments import kept_characters, segments_of

_PATH_UNIT = 2.0**24  # scores of paths are integers in this part of one


def train_unigram(
    words: Words,
    recipe: UnigramRecipe,
    on_pass: Callable[[int], None] | None = None,
    *,
    threads: int = 1,
) -> TrainingResult:
    """Learn pieces from words; `on_pass` is called after each pass over the segments."""
    alphabet = kept_characters(words, recipe)
    segments = segments_of(words, alphabet, recipe)
    pieces, weights = segments.seeds(
        alphabet.points, alphabet.counts, recipe.max_piece_length, recipe.seed_size,
        recipe.reserved, threads,
    )  # fmt: skip
    desired = recipe.vocab_size * 11 // 10
    probabilities = _native.shares(weights)
    sizes = [len(pieces)]
    while True:
        for _ in range(recipe.sub_iterations):
            expected = pieces.expected_counts(segments, probabilities, threads)
            pieces, counts, scores = estimate(pieces, expected)
            probabilities = _native.exact_exp(scores)
            sizes.append(len(pieces))
            if on_pass:
                on_pass(1)
        if len(pieces) <= desired:
            return _final(pieces, counts, scores, recipe)
        in_units = units_of(scores, _PATH_UNIT)
        in_paths = pieces.path_counts(segments, in_units, threads)
        target = max(desired, floor(len(pieces) * Fraction(recipe.shrinking_factor)))
        kept = pieces.prune(in_units, in_paths, counts, desired, target, threads)
        pieces, probabilities = pieces.subset(kept), probabilities[kept != 0]
        if on_pass:
            on_pass(1)


def estimate(
    pieces: _native.Pieces, expected: npt.NDArray[np.uint64]
) -> tuple[_native.Pieces, npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the pieces that are expected often enough, their counts and their scores."""
    kept, counts, scores = pieces.estimate(expected)
    return pieces if kept.all() else pieces.subset(kept), counts, scores


def units_of(scores: npt.NDArray[np.uint64], unit: float) -> npt.NDArray[np.int64]:
    """Return scores, which are bits of doubles, as whole numbers of a unit."""
    return np.rint(scores.view(np.float64) * unit).astype(np.int64)


def _final(
    pieces: _native.Pieces,
    counts: npt.NDArray[np.uint64],
    scores: npt.NDArray[np.uint64],
    recipe: UnigramRecipe,
) -> TrainingResult:
    texts, rounded = pieces.texts(), units_of(scores, SCORE_UNIT).tolist()
    whole = [(high << 64) + low for low, high in counts.tolist()]
    chosen = chosen_pieces(texts, whole, recipe)
    return result_of({texts[i]: (whole[i], rounded[i]) for i in chosen}, recipe)

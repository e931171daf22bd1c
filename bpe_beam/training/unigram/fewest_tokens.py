"""The training of `mingram`: the pieces of BPE that the shortest spellings use.

docs/algorithm.md has the definition. The score of a piece is a constant that outweighs all else, so
that the spelling with the fewest tokens wins, and among equally many the likeliest.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor

import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.training.merges.merge_training import learn_merges
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import BpeRecipe, MinGramRecipe
from bpe_beam.training.unigram.result import SCORE_UNIT, chosen_pieces, result_of
from bpe_beam.training.unigram.segments import Alphabet, kept_characters, segments_of

_TOKEN_COST = 64  # of each token of a spelling, as a natural logarithm
_ROUNDS = 2  # of best paths, before the least frequent pieces are dropped and after


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
    seeds = _seeds(segments, alphabet, recipe, on_merges)
    texts = sorted(seeds)
    pieces = _native.Pieces(texts)
    counts = np.array([seeds[text] for text in texts], np.int64)
    for last in (False, True):
        for _ in range(_ROUNDS):
            counts = pieces.path_counts(segments, token_scores(counts), threads)
        if not last:
            kept = np.zeros(len(texts), np.uint8)
            kept[chosen_pieces(texts, counts.tolist(), recipe)] = 1
            pieces, counts = pieces.subset(kept), counts[kept != 0]
            texts = pieces.texts()
    rows = zip(texts, counts.tolist(), token_scores(counts).tolist(), strict=True)
    return result_of({text: (count, score) for text, count, score in rows}, recipe)


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


def _seeds(
    segments: _native.Segments,
    alphabet: Alphabet,
    recipe: MinGramRecipe,
    on_merges: Callable[[int], None] | None,
) -> dict[bytes, int]:
    """Return the characters and the tokens of BPE, each with the count of its last merge."""
    words = Words(*segments.columns()[:3])
    learned = learn_merges(words, merging_recipe(alphabet, recipe), on_merges)
    seeds = {character.encode(): count for character, count in alphabet.characters.items()}
    for (left, right), count in zip(learned.merges, learned.counts.tolist(), strict=True):
        if left + right not in recipe.reserved:
            seeds[(left + right).encode()] = count
    return seeds


def token_scores(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the score of each piece in `SCORE_UNIT`, by how often the best paths have it."""
    logs = _logs(np.maximum(counts, 1)) - _logs(counts.sum(keepdims=True))
    return np.rint(logs * SCORE_UNIT).astype(np.int64) - _TOKEN_COST * SCORE_UNIT


def _logs(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    bits = _native.exact_log(counts.astype(np.float64).view(np.uint64))
    return bits.view(np.float64)

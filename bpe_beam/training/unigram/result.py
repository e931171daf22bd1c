"""From trained pieces to the entries of a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.recipe import PieceRecipe

SCORE_UNIT = 128
"""Scores are multiples of one part in so many. Sums of them are exact, with 32 bits too, so that
programs that add them in another order or precision find the same pieces."""

_RESERVED_LENGTH = 8


def chosen_pieces(texts: Sequence[bytes], counts: Sequence[int], recipe: PieceRecipe) -> list[int]:
    """Return the numbers of the characters, and of the most frequent others that have room."""

    def rank(piece: int) -> tuple[bool, int, bytes]:
        return len(texts[piece].decode()) > 1, -counts[piece], texts[piece]

    return sorted(range(len(texts)), key=rank)[: recipe.vocab_size - len(recipe.reserved)]


def result_of(
    pieces: Mapping[bytes, tuple[int, int]], recipe: PieceRecipe, sizes: Sequence[int] = ()
) -> TrainingResult:
    """Return the vocabulary of pieces, each with its count, and its score in `SCORE_UNIT`.

    The entries before the pieces have a score so low that their texts are spelled by characters.
    `sizes` is the number of pieces before the first pass, and after each pass.
    """
    order = sorted(pieces, key=lambda piece: (-pieces[piece][0], piece))
    scores = [pieces[piece][1] / SCORE_UNIT for piece in order]
    reserved = recipe.reserved
    low = max(_RESERVED_LENGTH, *map(len, reserved)) * min(scores) - _RESERVED_LENGTH
    tokens = (*reserved, *(piece.decode() for piece in order))
    vocab = {token: number for number, token in enumerate(tokens)}
    scores = [low] * len(reserved) + scores
    return TrainingResult(vocab, (), np.zeros(0, np.int64), scores=scores, sizes=sizes)

"""The sums of passes over words, and the pieces between two passes, as files."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bpe_beam import _native
from bpe_beam.training.unigram.passes import (
    PieceState,
    add_stored,
    added,
    narrowed,
    sums_to_bytes,
    widened,
)

pytestmark = pytest.mark.quick


def numbers_of(sums: np.ndarray) -> list[int]:
    return [low + (high << 64) for low, high in sums.tolist()]


def wide(numbers: list[int]) -> np.ndarray:
    return np.array([(n & (2**64 - 1), n >> 64) for n in numbers], np.uint64).reshape(-1, 2)


def test_integers_of_128_bits_are_added() -> None:
    rng = random.Random(1)
    left, right = ([rng.getrandbits(rng.choice([3, 64, 115])) for _ in range(200)] for _ in "ab")
    left[:3], right[:3] = [2**64 - 1, 2**64, 0], [1, 2**64 - 1, 0]
    expected = [a + b for a, b in zip(left, right, strict=True)]
    assert numbers_of(added(wide(left), wide(right))) == expected
    sums = wide(left)
    add_stored(sums, sums_to_bytes(wide(right)), "sums")
    assert numbers_of(sums) == expected


def test_63_bits_in_128() -> None:
    counts = np.array([0, 1, 2**63 - 1], np.int64)
    assert numbers_of(widened(counts)) == counts.tolist()
    assert narrowed(widened(counts)).tolist() == counts.tolist()


def test_the_state_is_read_as_it_was_written() -> None:
    pieces = _native.Pieces([b"a", b"ab", "é".encode(), "𠀀".encode(), "𠀀a".encode()])
    scores = np.array([-1.5, -0.1, -20.0, -1e-300, 0.0]).view(np.uint64)
    state = PieceState(pieces, wide([0, 1, 2**115, 5, 2**64]), scores, (9, 7, 5))
    read = PieceState.from_bytes(state.to_bytes(), state.sizes, "pieces")
    assert read.pieces.texts() == pieces.texts()
    assert numbers_of(read.counts) == numbers_of(state.counts)
    assert read.scores.tolist() == scores.tolist()
    assert (read.passes, read.characters) == (2, "aé𠀀")

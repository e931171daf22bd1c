"""What is too long for a shuffle, in pieces and whole again."""

from __future__ import annotations

import random

import pytest

from bpe_beam.errors import DataError
from bpe_beam.transforms.chunks import PIECE_BYTES, from_pieces, to_pieces

pytestmark = pytest.mark.quick

LONG = bytes(random.Random(0).randbytes(2 * PIECE_BYTES + 5))


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES])
def test_a_piece_has_at_most_its_size(size: int) -> None:
    pieces = list(to_pieces(LONG[:size]))
    assert len(pieces) == max(1, -(-size // PIECE_BYTES))
    assert max(len(data) for *_, data in pieces) <= PIECE_BYTES
    assert list(from_pieces(pieces)) == [LONG[:size]]


def test_they_come_in_any_order_and_equal_ones_mixed() -> None:
    other = LONG[::-1]
    pieces = [*to_pieces(LONG), *to_pieces(b"short"), *to_pieces(LONG), *to_pieces(other)]
    for seed in range(20):
        random.Random(seed).shuffle(pieces)
        assert sorted(from_pieces(pieces)) == sorted([LONG, LONG, other, b"short"])


def test_a_missing_piece_is_not_passed_over() -> None:
    with pytest.raises(DataError, match="came apart"):
        list(from_pieces(list(to_pieces(LONG))[1:]))

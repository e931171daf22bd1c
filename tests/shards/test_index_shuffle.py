"""`IndexShuffle`: a permutation, equal to grain's `index_shuffle`."""

import numpy as np
import pytest

from bpe_beam.shards.index_shuffle import IndexShuffle
from bpe_beam.shards.shard_rows import MAX_SEED

# (count, seed) and the numbers at positions 0, 1, count // 2 and count - 1, as grain 0.2.18 gives.
GOLDEN = {
    (10, 3): (4, 7, 5, 9),
    (65536, 0): (31105, 2851, 62881, 45824),
    (65538, MAX_SEED): (4613, 51109, 34785, 27705),
    (10**6, 42): (42268, 341132, 662568, 763453),
    (2**40, 7): (605708682160, 878623081001, 21870086032, 827443237268),
    (10**18, 123456789): (
        381311456158726502,
        381316058217307251,
        412002788881692576,
        552110592699131958,
    ),
}


@pytest.mark.parametrize(("count", "seed"), GOLDEN)
def test_numbers_equal_those_of_grain(count, seed):
    positions = np.array([0, 1, count // 2, count - 1], dtype=np.uint64)
    shuffle = IndexShuffle(count, seed)
    assert tuple(shuffle.number_at(positions).tolist()) == GOLDEN[count, seed]
    assert shuffle.position_of(shuffle.number_at(positions)).tolist() == positions.tolist()


# 65,537 is 4^8 + 1: with grain's block of 16 bits two positions would get one number.
@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000, 65535, 65536, 65537, 65538, 100_000])
@pytest.mark.parametrize("seed", [0, 1, MAX_SEED])
def test_every_number_has_one_position(count, seed):
    shuffle = IndexShuffle(count, seed)
    positions = np.arange(count, dtype=np.uint64)
    numbers = shuffle.number_at(positions)
    assert np.array_equal(np.sort(numbers), positions)
    assert np.array_equal(shuffle.position_of(numbers), positions)


def test_seeds_give_different_orders():
    positions = np.arange(1000, dtype=np.uint64)
    orders = {IndexShuffle(1000, seed).number_at(positions).tobytes() for seed in range(20)}
    assert len(orders) == 20


@pytest.mark.parametrize(("count", "seed"), [(0, 0), (2**63 + 1, 0), (5, -1), (5, 2**32)])
def test_refuses_what_is_out_of_range(count, seed):
    with pytest.raises(ValueError, match=r"must be \d"):
        IndexShuffle(count, seed)
    with pytest.raises(ValueError, match="at most 4"):
        IndexShuffle(5, 0).number_at(np.array([5], dtype=np.uint64))

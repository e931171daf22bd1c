"""The seeded order beside grain's own."""

import importlib

import numpy as np
import pytest

from bpe_beam.shards.index_shuffle import IndexShuffle
from bpe_beam.shards.shard_rows import MAX_SEED

pytestmark = pytest.mark.trainers

NATIVE = "grain._src.python.experimental.index_shuffle.python.index_shuffle_module"


@pytest.mark.parametrize("count", [50, 5000, 65536, 65538, 2**33 + 5, 2**50 - 3])
def test_equals_grain(count):
    theirs = importlib.import_module(NATIVE)
    random = np.random.default_rng(count)
    for seed in (0, 1, 77, MAX_SEED):
        positions = random.integers(count, size=50, dtype=np.uint64)
        expected = [
            theirs.index_shuffle(at, max_index=count - 1, seed=seed, rounds=4)
            for at in positions.tolist()
        ]
        assert IndexShuffle(count, seed).number_at(positions).tolist() == expected


def test_equals_the_shuffle_of_a_grain_dataset():
    grain = importlib.import_module("grain")
    expected = list(grain.MapDataset.range(1000).shuffle(seed=17))
    positions = np.arange(1000, dtype=np.uint64)
    assert IndexShuffle(1000, 17).number_at(positions).tolist() == expected

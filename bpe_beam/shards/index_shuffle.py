"""A seeded order of 0 to N - 1 without a table: the permutation of grain's `index_shuffle`.

A small block cipher (Simon, with 16 bits or more) permutes the numbers of its block; a number that
falls beyond N - 1 is enciphered again until it does not. So every number is mapped by itself, in
both directions, and any process that knows N and the seed agrees with every other.

The result equals grain's wherever grain's is a permutation. For N = 65,537 and other powers of 4
plus 1 grain chooses a block that is too small for the last number; the block here is large enough.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards.shard_rows import MAX_SEED

ROUNDS = 4  # the rounds of the cipher, as grain's `MapDataset.shuffle` has them

_LEAST_BLOCK_BITS = 16

_FEW = 8  # the maximum numbers that are enciphered faster one by one than as an array


class IndexShuffle:
    """A permutation of 0 to `count` - 1."""

    def __init__(self, count: int, seed: int) -> None:
        if not 1 <= count <= 2**63:
            raise ValueError(f"count must be 1 to 2^63, got {count}")
        if not 0 <= seed <= MAX_SEED:
            raise ValueError(f"seed must be 0 to {MAX_SEED}, got {seed}")
        self._last = count - 1
        bits = max((count - 1).bit_length(), _LEAST_BLOCK_BITS)
        self._word = (bits + 1) // 2
        self._mask = (1 << self._word) - 1
        self._keys = [key & self._mask for key in _round_keys(seed)]
        # In the smallest block most numbers are beyond a small `count`, and walks are long.
        self._tables = self._walk_all() if bits == _LEAST_BLOCK_BITS else None

    def number_at(self, positions: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return uint64[n]: the numbers at positions, uint64[n], of the order."""
        return self._walk(positions, forward=True)

    def position_of(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return uint64[n]: the positions of numbers, uint64[n]; the inverse of `number_at`."""
        return self._walk(numbers, forward=False)

    def _walk(self, values: NDArray[np.uint64], forward: bool) -> NDArray[np.uint64]:
        """Encipher or decipher each value until it is in range."""
        if values.size and values.max() > self._last:
            raise ValueError(f"values must be at most {self._last}, got {values.max()}")
        if self._tables is not None:
            return self._tables[forward][values]
        results: NDArray[np.uint64] = self._cipher(values, forward)
        beyond = np.flatnonzero(results > self._last)
        while beyond.size > _FEW:
            again = self._cipher(results[beyond], forward)
            results[beyond] = again
            beyond = beyond[again > self._last]
        for index in beyond.tolist():
            value = int(results[index])
            while value > self._last:
                value = self._cipher(value, forward)
            results[index] = value
        return results

    def _walk_all(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the positions of all numbers, and the numbers at all positions."""
        block = np.arange(1 << _LEAST_BLOCK_BITS, dtype=np.uint64)
        step, last = self._cipher(block, True).tolist(), self._last
        numbers = []
        for position in range(last + 1):
            number = step[position]
            while number > last:
                number = step[number]
            numbers.append(number)
        order = np.array(numbers, dtype=np.uint64)
        return np.argsort(order).astype(np.uint64), order

    def _cipher(self, values: Any, forward: bool) -> Any:
        """Encipher or decipher uint64[n], or an int."""
        left, right = values >> self._word, values & self._mask
        if forward:
            for key, other in zip(self._keys[::2], self._keys[1::2], strict=True):
                left ^= self._mixed(right) ^ key
                right ^= self._mixed(left) ^ other
        else:
            for key, other in zip(self._keys[-2::-2], self._keys[::-2], strict=True):
                right ^= self._mixed(left) ^ other
                left ^= self._mixed(right) ^ key
        return (left << self._word) | right

    def _mixed(self, word: Any) -> Any:
        """Return the round function of Simon."""
        return (self._rotated(word, 1) & self._rotated(word, 8)) ^ self._rotated(word, 2)

    def _rotated(self, word: Any, bits: int) -> Any:
        return ((word << bits) | (word >> (self._word - bits))) & self._mask


@lru_cache(maxsize=64)
def index_shuffle(count: int, seed: int) -> IndexShuffle:
    """Return the permutation of a seed; the last ones are cached."""
    return IndexShuffle(count, seed)


def _round_keys(seed: int) -> list[int]:
    """Return a key of 32 bits for each round: C++'s `std::seed_seq{seed}.generate`."""
    size, near, far = ROUNDS, 1, 2  # the distances for four keys
    keys = [0x8B8B8B8B] * size
    for step in range(size):
        mixed = _spread(keys[step] ^ keys[(step + near) % size] ^ keys[step - 1], 1664525)
        last = mixed + (1 if step == 0 else step + seed if step == 1 else step)
        keys[(step + near) % size] += mixed
        keys[(step + far) % size] += last
        keys[step] = last
        keys = [key & 0xFFFFFFFF for key in keys]
    for step in range(size):
        mixed = _spread(keys[step] + keys[(step + near) % size] + keys[step - 1], 1566083941)
        last = (mixed - step) & 0xFFFFFFFF
        keys[(step + near) % size] ^= mixed
        keys[(step + far) % size] ^= last
        keys[step] = last
    return keys


def _spread(value: int, factor: int) -> int:
    value &= 0xFFFFFFFF
    return factor * (value ^ value >> 27) & 0xFFFFFFFF

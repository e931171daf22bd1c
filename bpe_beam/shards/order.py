"""The order in which a view reads the items of a data set: numbers by arithmetic, never a table."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bpe_beam.shards.index_shuffle import IndexShuffle


class Stride(Struct, frozen=True):
    """Every `step`-th item from `first` on, `count` in total; `step` may be negative."""

    first: int
    step: int
    count: int


class Shuffle(Struct, frozen=True):
    """All `count` items in the order of a seed."""

    seed: int
    count: int


class Order(Struct, frozen=True):
    """The items of a view, in their order.

    Attributes:
        steps: The steps that make the order from the order of the data set: the first chooses from
            the data set, each other from what the step before has chosen.
    """

    steps: tuple[Stride | Shuffle, ...]

    @staticmethod
    def of_all(count: int) -> Order:
        """Return the order of the data set itself."""
        return Order((Stride(0, 1, count),))

    def __len__(self) -> int:
        return self.steps[-1].count

    def shuffled(self, seed: int) -> Order:
        """Return the same items in the order of a seed."""
        return Order((*self.steps, Shuffle(seed, len(self))))

    def sliced(self, bounds: slice) -> Order:
        """Return the items that a slice of a list would have."""
        chosen = range(len(self))[bounds]
        last = self.steps[-1]
        if isinstance(last, Shuffle):
            return Order((*self.steps, Stride(chosen.start, chosen.step, len(chosen))))
        first, step = last.first + last.step * chosen.start, last.step * chosen.step
        return Order((*self.steps[:-1], Stride(first, step, len(chosen))))

    def as_json(self) -> list[list[str | int]]:
        """Return the steps as values of JSON, for saved positions."""
        return [
            ["shuffle", step.seed, step.count]
            if isinstance(step, Shuffle)
            else ["stride", step.first, step.step, step.count]
            for step in self.steps
        ]

    @property
    def run(self) -> int | None:
        """The first item, if the items follow each other in the data set; else None."""
        (first, *others) = self.steps
        if others or not isinstance(first, Stride) or first.step != 1:
            return None
        return first.first

    def items(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[n]: the numbers in the data set of the items at positions, int64[n]."""
        for step in reversed(self.steps):
            if isinstance(step, Stride):
                positions = step.first + step.step * positions
            elif positions.size:
                shuffle = _shuffle(step.count, step.seed)
                positions = shuffle.number_at(positions.astype(np.uint64)).astype(np.int64)
        return positions


@lru_cache(maxsize=64)
def _shuffle(count: int, seed: int) -> IndexShuffle:
    return IndexShuffle(count, seed)

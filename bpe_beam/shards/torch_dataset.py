"""A view as a map-style data set of torch. Imported where it is asked for: torch is the user's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset


class Int64View(Protocol):
    """The methods of a `TokenView` that a data set of torch needs; its items are int64."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> NDArray[np.int64]: ...
    def __getitems__(self, indices: Sequence[int]) -> Sequence[NDArray[np.int64]]: ...


class TorchTokens(Dataset[torch.Tensor]):
    """Items of a view as tensors."""

    def __init__(self, view: Int64View) -> None:
        self._view = view

    def __len__(self) -> int:
        return len(self._view)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self._view[index])

    def __getitems__(self, indices: Sequence[int]) -> list[torch.Tensor]:
        """Return several items; torch's DataLoader asks so for a batch."""
        return [torch.from_numpy(ids) for ids in self._view.__getitems__(indices)]

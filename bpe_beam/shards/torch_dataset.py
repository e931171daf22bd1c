"""A view as a map-style data set of torch. Imported where it is asked for: torch is the user's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from bpe_beam.shards.dataset import TokenView


class TorchTokens(Dataset[torch.Tensor]):
    """Items of a view as int64 tensors.

    Args:
        view: The view.
    """

    def __init__(self, view: TokenView[Any]) -> None:
        self._view = view.astype(np.int64)

    def __len__(self) -> int:
        return len(self._view)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self._view[index])

    def __getitems__(self, indices: Sequence[int]) -> list[torch.Tensor]:
        """Return several items; torch's DataLoader asks so for a batch."""
        found = self._view.__getitems__(indices)
        return [torch.from_numpy(ids) for ids in found]

"""Ids added before and after the ids of each text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def framed(
    ids: pa.LargeListArray, before: Sequence[int], after: Sequence[int]
) -> pa.LargeListArray:
    """Return each list with `before` and `after` around it; the same lists if both are empty.

    Args:
        ids: Lists of uint32.
        before: Ids that are added before each list.
        after: Ids that are added after each list.
    """
    if not before and not after:
        return ids
    import numpy as np
    import pyarrow as pa

    offsets = ids.offsets.to_numpy()
    lengths = np.diff(offsets)
    extra = len(before) + len(after)
    bounds = offsets - offsets[0] + extra * np.arange(len(offsets))
    result = np.empty(int(bounds[-1]), np.uint32)
    inner = np.ones(len(result), bool)
    for i, token in enumerate(before):
        result[bounds[:-1] + i] = token
        inner[bounds[:-1] + i] = False
    for i, token in enumerate(after):
        position = bounds[:-1] + len(before) + lengths + i
        result[position] = token
        inner[position] = False
    result[inner] = ids.values.to_numpy()[offsets[0] : offsets[-1]]
    return pa.LargeListArray.from_arrays(pa.array(bounds, pa.int64()), pa.array(result))

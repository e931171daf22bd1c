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
    values = ids.values.to_numpy()[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    # For each list the positions of its added ids: first those before it, then those after it.
    ends = np.stack([offsets[:-1], offsets[1:]], axis=1)
    positions = np.repeat(ends, [len(before), len(after)], axis=1)
    added = np.tile(np.array([*before, *after], np.uint32), len(ids))
    result = np.insert(values, positions.ravel(), added)
    bounds = offsets + positions.shape[1] * np.arange(len(offsets))
    return pa.LargeListArray.from_arrays(pa.array(bounds), pa.array(result))

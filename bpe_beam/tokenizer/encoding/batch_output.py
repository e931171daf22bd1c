"""The ids or texts of a batch as Arrow arrays, NumPy arrays, Python lists, or one padded matrix."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from bpe_beam.errors import UsageError, require_whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

Output = Literal["lists", "arrow", "numpy"]

OUTPUTS = ("lists", "arrow", "numpy")


def lists_as(lists: pa.LargeListArray, output: str) -> Any:
    """Return lists of ids in another form."""
    if output == "arrow":
        return lists
    if output == "lists":
        return lists.to_pylist()
    values, offsets = lists.values.to_numpy(), lists.offsets.to_numpy().tolist()
    return [values[start:end] for start, end in itertools.pairwise(offsets)]


def texts_as(texts: pa.LargeStringArray | pa.LargeBinaryArray, output: str) -> Any:
    """Return texts, or bytes, in another form."""
    if output == "numpy":
        return texts.to_numpy(zero_copy_only=False)
    return texts.to_pylist() if output == "lists" else texts


def framed(
    ids: pa.LargeListArray, before: Sequence[int], after: Sequence[int]
) -> pa.LargeListArray:
    """Return each list with `before` and `after` around it; the same lists if both are empty."""
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


def truncated(lists: pa.LargeListArray, most: int) -> pa.LargeListArray:
    """Return lists without all but the first `most` ids of each."""
    import numpy as np
    import pyarrow as pa

    offsets = lists.offsets.to_numpy()
    lengths = np.diff(offsets)
    positions = np.arange(offsets[0], offsets[-1]) - np.repeat(offsets[:-1], lengths)
    values = lists.values.to_numpy()[offsets[0] : offsets[-1]][positions < most]
    ends = np.cumsum(np.append(0, np.minimum(lengths, most)))
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(values))


def padded(
    lists: pa.LargeListArray,
    before: Sequence[int],
    after: Sequence[int],
    pad_id: int,
    max_length: int | None,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """Return lists of ids as the rows of a matrix, and where it has ids.

    Returns:
        uint32[lists, longest row], and bool of the same shape: false where it is padding.
    """
    import numpy as np

    frame = len(before) + len(after)
    if max_length is not None:
        require_whole("max_length", max_length, max(1, frame))
        lists = truncated(lists, min(max_length, 1 << 62) - frame)
    if isinstance(pad_id, bool) or not isinstance(pad_id, int) or not 0 <= pad_id < 2**32:
        raise UsageError(f"must be an id, a whole number from 0, got {pad_id!r}", ("pad_id",))
    lists = framed(lists, before, after)
    lengths = np.diff(lists.offsets.to_numpy())
    mask = np.arange(lengths.max(initial=frame)) < lengths[:, None]
    rows = np.full(mask.shape, pad_id, np.uint32)
    rows[mask] = lists.values.to_numpy()
    return rows, mask

"""The ids or texts of a batch as Arrow arrays, NumPy arrays, Python lists, or one padded matrix."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from bpe_beam.errors import UsageError, require_choice, require_whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

Output = Literal["lists", "arrow", "numpy"]

OUTPUTS = ("lists", "arrow", "numpy")


def check_output(output: str) -> None:
    """Refuse a form of a batch that there is not."""
    require_choice("output", output, OUTPUTS)


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
    if isinstance(pad_id, bool) or not isinstance(pad_id, int) or not 0 <= pad_id < 2**32:
        raise UsageError(f"must be an id, a whole number from 0, got {pad_id!r}", ("pad_id",))
    offsets = lists.offsets.to_numpy()
    kept = np.diff(offsets)
    if max_length is not None:
        kept = np.minimum(kept, min(max_length, 1 << 62) - frame)
    longest = int(kept.max(initial=0))
    rows = np.full((len(kept), longest + frame), pad_id, np.uint32)
    columns = np.arange(longest)
    filled = columns < kept[:, None]
    own = rows[:, len(before) : len(before) + longest]
    own[filled] = lists.values.to_numpy()[(offsets[:-1, None] + columns)[filled]]
    rows[:, : len(before)] = before
    ends = len(before) + kept
    for number, token_id in enumerate(after):
        rows[np.arange(len(rows)), ends + number] = token_id
    return rows, np.arange(rows.shape[1]) < (ends + len(after))[:, None]

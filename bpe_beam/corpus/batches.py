"""Arrow batches of documents, as readers yield them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

BATCH_SCHEMA = pa.schema(
    [
        ("id", pa.large_string()),
        ("source", pa.large_string()),
        ("place", pa.uint64()),
        ("text", pa.large_string()),
    ]
)
"""A batch of documents: the id, null if it has none; the source; the place; the text. The place is
the file's number in the plan << PLACE_BITS | the byte of the decompressed file, or the row, at
which the record begins: it orders documents as in the corpus. It is null after the first boundary
of a split compressed file, since the number of bytes before it is unknown."""

PLACE_BITS = 44

MAX_RECORD_BYTES = (1 << 31) - 1
"""Maximum bytes of a record in its file; a longer one is a reject."""

MAX_BATCH_ROWS = 1 << 16


def strings(
    data: np.ndarray[Any, Any],
    ends: np.ndarray[Any, Any],
    valid: np.ndarray[Any, Any] | None = None,
) -> pa.Array:
    """Return a column over the buffers of native code, without a copy.

    `data` has the bytes of all texts, `uint8[m]`; `ends` a 0 and the end of each text,
    `int64[n + 1]`; `valid` a 1 for each text that is not null, `uint8[n]`; None or empty: all.
    """
    nulls = None
    if valid is not None and len(valid) and not valid.all():
        nulls = pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [nulls, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(ends) - 1, buffers)


def integers(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return integers as an Arrow array over their memory; `pa.array` would import `numpy.ma`."""
    values = np.ascontiguousarray(values)
    buffers = [None, pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]

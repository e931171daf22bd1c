"""Documents and ids at any position of shards whose ids are one stream."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.errors import DataError

if TYPE_CHECKING:
    from bpe_beam.shards.stored_shard import IdArray, Ids, IdType, ShardFile, StoredShard


class StreamAccess:
    """A `ShardAccess`."""

    def __init__(
        self,
        shard: StoredShard,
        ids: ShardFile,
        dtype: np.dtype[Any],
        bounds: IdArray,
        *,
        ids_at: int = 0,
        missing: Literal["first", "last"] | None = None,
        unit: int = 1,
    ) -> None:
        self._url = ids.url
        self._documents, self._tokens = shard.entry.documents, shard.entry.tokens
        self._ids = ids.array(dtype, self._tokens, ids_at)
        self._bounds = bounds
        self._skip = int(missing == "first")
        self._end = self._tokens * unit if missing == "last" else None
        self._unit = unit
        self._entries: memoryview | None = None
        # Documents of mapped files by one call, in a third of the time that numpy takes.
        self._stored: _native.StoredIds | None = None
        if isinstance(bounds, np.ndarray):
            self._entries = bounds.view(np.uint8).data.cast("q")
            if isinstance(self._ids, np.ndarray):
                self._stored = _native.StoredIds(
                    self._ids,
                    bounds.view(np.uint8),
                    unit=unit,
                    without_first=missing == "first",
                    without_last=missing == "last",
                )

    def document(self, index: int, dtype: IdType) -> Ids:
        """See `ShardAccess.document`."""
        if self._stored is not None:
            ids = self._stored.document(index, dtype.num)
            if ids is not None:
                return ids
        begin, end = self._read_bounds(index, index + 1).tolist()
        if not 0 <= begin <= end <= self._tokens:
            raise self._wrong_bounds(index, begin, end)
        return self._ids[begin:end].astype(dtype)

    def documents(self, start: int, stop: int, limit: int, dtype: IdType) -> Sequence[Ids]:
        """See `ShardAccess.documents`."""
        bounds = self._read_bounds(start, stop)
        falling = np.flatnonzero(bounds[1:] < bounds[:-1])
        if falling.size or bounds[0] < 0 or bounds[-1] > self._tokens:
            bad = int(falling[0]) if falling.size else 0
            raise self._wrong_bounds(start + bad, int(bounds[bad]), int(bounds[bad + 1]))
        count = max(int(np.searchsorted(bounds, bounds[0] + limit, side="right")) - 1, 1)
        ids = self._ids[int(bounds[0]) : int(bounds[count])]
        ends = (bounds[: count + 1] - bounds[0]).tolist()
        # Each a copy, so that no document keeps its neighbours in memory.
        return [ids[begin:end].astype(dtype) for begin, end in pairwise(ends)]

    def tokens(self, start: int, stop: int, dtype: IdType) -> Ids:
        """See `ShardAccess.tokens`."""
        return self._ids[start:stop].astype(dtype)

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        """See `ShardAccess.starts`. Cost: two binary searches."""
        bounds = self._read_bounds(self._first_from(start), self._first_from(stop))
        return bounds[:-1][bounds[:-1] < bounds[1:]]

    def _first_from(self, token: int) -> int:
        """Return the first document that begins at a token of the shard, or after it."""
        skip, entries = self._skip, self._entries
        if token <= 0:
            return 0
        if entries is not None:
            return skip + bisect_left(entries, token * self._unit, 0, self._documents - skip)
        low, high = skip, self._documents
        while low < high:
            middle = (low + high) // 2
            if int(self._read_bounds(middle, middle + 1)[0]) < token:
                low = middle + 1
            else:
                high = middle
        return low

    def _read_bounds(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return int64[stop - start + 1]: where documents begin, and where the last one ends."""
        first = start - self._skip
        bounds = self._bounds[max(first, 0) : stop + 1 - self._skip].astype(np.int64)
        if first < 0:
            bounds = np.concatenate((np.zeros(1, np.int64), bounds))
        if bounds.size == stop - start and self._end is not None:
            bounds = np.concatenate((bounds, np.array([self._end], np.int64)))
        return bounds // self._unit if self._unit > 1 else bounds

    def _wrong_bounds(self, document: int, begin: int, end: int) -> DataError:
        return DataError(
            f"{self._url}: document {document} goes from token {begin} to {end}; expected a range "
            f"within 0 to {self._tokens}: the shard is damaged, and `verify` says where"
        )


def fitting_width(
    shard: StoredShard, ids: ShardFile, dtypes: Sequence[np.dtype[Any]]
) -> np.dtype[Any]:
    """Return the type of ids in a file that has nothing else."""
    for dtype in dtypes:
        if ids.size == shard.entry.tokens * dtype.itemsize:
            return dtype
    widths = " or ".join(str(dtype.itemsize) for dtype in dtypes)
    raise DataError(
        f"{ids.url}: has {ids.size} bytes; the manifest says {shard.entry.tokens} tokens, of "
        f"{widths} bytes"
    )


def check_documents(file: ShardFile, count: int, shard: StoredShard) -> None:
    """Refuse a file that has another number of documents than the manifest says."""
    if count != shard.entry.documents:
        raise DataError(
            f"{file.url}: has {count} documents; the manifest says {shard.entry.documents}"
        )

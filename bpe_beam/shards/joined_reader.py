"""Reading several shards of one format as if they were one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards.formats.id_stream import check_range
from bpe_beam.shards.formats.interface import ShardReader

Number = TypeVar("Number", bound=np.generic)


class JoinedReader:
    """A `ShardReader` of the documents of several, one after the other."""

    def __init__(self, readers: Sequence[ShardReader]) -> None:
        self._readers = readers
        self._documents = np.cumsum([0, *map(len, readers)])
        self._tokens = np.cumsum([0, *(reader.token_count for reader in readers)])
        self.token_count = int(self._tokens[-1])

    def __enter__(self) -> JoinedReader:
        return self

    def __exit__(self, *exception: Any) -> None:
        return

    def __len__(self) -> int:
        return int(self._documents[-1])

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        """See `ShardReader.lengths`."""
        check_range("documents", start, stop, len(self))
        parts = self._parts(self._documents, start, stop, lambda reader: reader.lengths)
        return np.concatenate([np.empty(0, np.int32), *parts])

    def tokens(self, start: int, stop: int) -> NDArray[np.uint32]:
        """See `ShardReader.tokens`."""
        check_range("tokens", start, stop, self.token_count)
        parts = self._parts(self._tokens, start, stop, lambda reader: reader.tokens)
        return np.concatenate([np.empty(0, np.uint32), *parts])

    def document(self, index: int) -> NDArray[np.uint32]:
        """See `ShardReader.document`."""
        check_range("documents", index, index + 1, len(self))
        shard = int(np.searchsorted(self._documents, index, side="right")) - 1
        return self._readers[shard].document(index - int(self._documents[shard]))

    def _parts(
        self,
        bounds: NDArray[np.int64],
        start: int,
        stop: int,
        method: Callable[[ShardReader], Callable[[int, int], NDArray[Number]]],
    ) -> list[NDArray[Number]]:
        """Return what the readers have of a range; `bounds` is where each of them begins."""
        parts = []
        for reader, first, end in zip(self._readers, bounds[:-1], bounds[1:], strict=True):
            low, high = max(start, int(first)), min(stop, int(end))
            if low < high:
                parts.append(method(reader)(low - int(first), high - int(first)))
        return parts

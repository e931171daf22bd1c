"""Reading shards that store where each document of a stream of ids ends."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.id_stream import (
    BLOCK,
    IdStreamReader,
    check_range,
)
from bpe_beam.shards.formats.interface import MAX_DOCUMENT_TOKENS


class EndsReader(IdStreamReader):
    """The base of readers of such shards. A subclass reads the ends from its file."""

    @abstractmethod
    def read_ends(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return int64[stop - start]: where documents end, in tokens of the shard."""

    @abstractmethod
    def describe_end(self, document: int) -> str:
        """Return the file and the position of a document's end in it, for errors."""

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        """See `ShardReader.lengths`."""
        check_range("documents", start, stop, self.count)
        bounds = self._bounds(start, stop)
        lengths = bounds[1:] - bounds[:-1]
        wrong = (lengths < 0) | (lengths > MAX_DOCUMENT_TOKENS)
        if wrong.any():
            bad = int(np.argmax(wrong))
            raise DataError(
                f"{self.describe_end(start + bad)}: document {start + bad} ends at token "
                f"{int(bounds[bad + 1])}; expected {int(bounds[bad])}, where it begins, or at most "
                f"{MAX_DOCUMENT_TOKENS} more"
            )
        return lengths.astype(np.int32)

    def document(self, index: int) -> NDArray[np.uint32]:
        """See `ShardReader.document`."""
        check_range("documents", index, index + 1, self.count)
        begin, end = self._bounds(index, index + 1).tolist()
        return self.tokens(begin, end)

    def count_tokens(self) -> int:
        """Return the end of the last document, after a check of all lengths."""
        for start in range(0, self.count, BLOCK):
            self.lengths(start, min(start + BLOCK, self.count))
        return int(self.read_ends(self.count - 1, self.count)[0]) if self.count else 0

    def _bounds(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return int64[stop - start + 1]: where documents begin, and where the last one ends."""
        if start:
            return self.read_ends(start - 1, stop)
        return np.concatenate((np.zeros(1, np.int64), self.read_ends(0, stop)))

"""Sequences of one length of the ids of a tokens folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards.folder_reader import FolderReader
from bpe_beam.shards.order import Order
from bpe_beam.shards.stored_shard import Ids, IdType
from bpe_beam.shards.token_view import RUN_IDS, TokenView
from bpe_beam.storage import redact
from bpe_beam.storage.json_file import JsonObject

if TYPE_CHECKING:
    from typing_extensions import Self


class TokenSequences(TokenView[Ids]):
    """Sequences of one length, see `TokenDataset.sequences`.

    Args:
        reader: Reads the folder.
        order: The order of the sequences.
        dtype: The type of the sequences.
        length: The number of ids of a sequence.
        stride: The distance of their starts.
    """

    def __init__(
        self, reader: FolderReader, order: Order, dtype: IdType, length: int, stride: int
    ) -> None:
        super().__init__(reader, order, dtype)
        self.length, self.stride = length, stride

    def document_starts(self, index: int) -> NDArray[np.int64]:
        """Return int64[n]: the positions in a sequence at which documents begin.

        A document that continues from the sequence before does not begin in this one; documents
        without tokens begin nowhere.

        Args:
            index: The position of the sequence, where -1 is the last.

        Raises:
            IndexError: The position is out of range.
            DataError: The folder is damaged or cannot be read.
        """
        (item,) = self._checked([index])
        start = item * self.stride
        return self.reader.starts(start, start + self.length) - start

    def identity(self) -> JsonObject:
        """See `TokenView.identity`."""
        return {**super().identity(), "length": self.length, "stride": self.stride}

    def __repr__(self) -> str:
        return (
            f"<TokenSequences: {redact(self.reader.url)!r}, {self.format}, {len(self):,} sequences "
            f"of {self.length:,} tokens>"
        )

    def _read(self, item: int) -> Ids:
        start = item * self.stride
        return self.reader.ids(start, start + self.length, self.dtype)

    def _read_run(self, start: int, stop: int) -> Sequence[Ids]:
        stop = min(stop, start + max(RUN_IDS // max(self.length, self.stride), 1))
        first = start * self.stride
        ids = self.reader.ids(first, (stop - 1) * self.stride + self.length, self.dtype)
        starts = range(0, (stop - start) * self.stride, self.stride)
        return [ids[at : at + self.length].copy() for at in starts]

    def batch(self, items: list[Ids]) -> Ids:
        """See `TokenView.batch`."""
        return np.stack(items)

    def _same(self, order: Order, dtype: IdType) -> Self:
        return type(self)(self.reader, order, dtype, self.length, self.stride)

"""The documents and sequences of a tokens folder: any position, any order, resumable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import require, require_whole
from bpe_beam.shards.folder_reader import FolderReader
from bpe_beam.shards.stored_shard import Ids, IdType
from bpe_beam.shards.token_view import POSITIONS, RUN_IDS, Order, TokenView
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_file import JsonObject

if TYPE_CHECKING:
    from typing_extensions import Self

MEMORY = 64 << 20  # the bytes of blocks of remote files in memory, by default


def open_dataset(storage: Storage, url: str, *, memory: int = MEMORY) -> TokenDataset:
    """Return the documents of a finished tokens folder, see `bpe_beam.shards.open`.

    Args:
        storage: The storage client.
        url: Path or URL of the folder.
        memory: See `bpe_beam.shards.open`.
    """
    require(memory >= 1 << 20, f"must be at least {1 << 20:,} bytes, got {memory:,}", "memory")
    reader = FolderReader(storage, url, memory)
    return TokenDataset(reader, Order.of_all(reader.documents), np.dtype(np.uint32))


class TokenDataset(TokenView[list[Ids]]):
    """Documents, each an array of ids. `bpe_beam.shards.open` makes it."""

    @property
    def token_count(self) -> int:
        """The number of ids of the whole folder."""
        return self.reader.tokens

    def labels(self, index: int) -> JsonObject:
        """Return the labels of an item: what the format stores in addition to its ids.

        Args:
            index: The position of the item, where -1 is the last.

        Returns:
            For a document its `id`, its `source`, and `text_bytes`, the size of its text. For a
            sequence that `tokenize` has made `seq_lengths`, the tokens of each of its documents;
            the tokens after them are padding. None where a value is unknown. Empty if the format
            has no place for labels.

        Raises:
            IndexError: The position is out of range.
            DataError: The folder is damaged or cannot be read.
        """
        (item,) = self._checked([index])
        return self.reader.labels(item)

    def position_ids(self, index: int) -> NDArray[np.int64]:
        """Return int64[tokens]: the position of each token of an item in its document.

        Positions begin anew with each document of a sequence that `tokenize` has made, and with its
        padding.

        Args:
            index: The position of the item, where -1 is the last.

        Raises:
            UsageError: The format does not store where documents begin in sequences.
        """
        begins: NDArray[np.int64] = np.cumsum([0, *(self._seq_lengths(index) or ())])
        positions = np.arange(self[index].size)
        return positions - begins[np.searchsorted(begins, positions, side="right") - 1]

    def loss_mask(self, index: int) -> NDArray[np.bool_]:
        """Return bool[tokens]: which tokens of an item belong to documents, not to padding.

        Args:
            index: The position of the item, where -1 is the last.

        Raises:
            UsageError: The format does not store where documents begin in sequences.
        """
        tokens = self[index].size
        lengths = self._seq_lengths(index)
        return np.arange(tokens) < (tokens if lengths is None else sum(lengths))

    def _seq_lengths(self, index: int) -> list[int] | None:
        """Return the tokens of each document of a sequence; None of a document."""
        (item,) = self._checked([index])
        if not self.reader.has_sequences:
            return None
        labels = self.reader.labels(item)
        lengths: list[int] | None = labels.get("seq_lengths")
        require(
            lengths is not None,
            f"{self.format} does not store where documents begin in sequences"
            if not labels
            else f"it is unknown where documents begin in sequence {item}: it was converted from a "
            "format that does not store it",
            remedy="tokenize with --format parquet or arrow, which do",
        )
        return lengths

    def sequences(self, length: int, *, stride: int | None = None) -> TokenSequences:
        """Return the folder's ids as sequences of one length, across documents and shards.

        Sequence i has the ids from `i * stride` on, of all documents one after the other; ids at
        the end that fill no sequence are left out. For inputs and targets in one array, ask for one
        more id than the model gets, and for a stride of `length - 1`.

        Args:
            length: The number of ids of a sequence, at least 1.
            stride: The distance of their starts, at least 1; None for `length`.

        Raises:
            UsageError: `length` or `stride` is out of range, or this view has not all documents in
                the order of the folder; sequences can be sliced and shuffled in turn.
        """
        stride = length if stride is None else stride
        require_whole("length", length, 1)
        require_whole("stride", stride, 1)
        require(
            self.order.as_json() == Order.of_all(self.reader.documents).as_json(),
            "sequences are of a whole folder: ask for them first, then slice or shuffle them",
        )
        count = _sequences_in(self.reader, length, stride)
        return TokenSequences(self.reader, Order.of_all(count), self.dtype, length, stride)

    def __repr__(self) -> str:
        return (
            f"<TokenDataset: {redact(self.reader.url)!r}, {self.format}, {len(self):,} documents>"
        )

    def _read(self, item: int) -> Ids:
        return self.reader.document(item, self.dtype)

    def _read_run(self, start: int, stop: int) -> Sequence[Ids]:
        stop = min(stop, start + POSITIONS)
        return self.reader.documents_from(start, stop, RUN_IDS, self.dtype)

    def batch(self, items: list[Ids]) -> list[Ids]:
        """See `TokenView.batch`."""
        return items

    def _same(self, order: Order, dtype: IdType) -> Self:
        return type(self)(self.reader, order, dtype)

    def _total(self, reader: FolderReader) -> int:
        return reader.documents


def _sequences_in(reader: FolderReader, length: int, stride: int) -> int:
    """Return the number of whole sequences in a folder's ids."""
    return max(reader.tokens - length, -stride) // stride + 1


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

    def _total(self, reader: FolderReader) -> int:
        return _sequences_in(reader, self.length, self.stride)

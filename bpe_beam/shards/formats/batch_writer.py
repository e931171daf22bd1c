"""Writing shards batch by batch: what the writers of all formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.formats.interface import MAX_DOCUMENT_TOKENS, ShardFiles
from bpe_beam.vocabulary_limits import MAX_VOCAB_SIZE

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self


class BatchWriter(ABC):
    """The base of `ShardWriter`s. A subclass writes checked batches, and publishes the shard.

    Attributes:
        name: The shard's name.
        vocab_size: One more than the greatest id.
        documents, tokens: The numbers of documents and tokens, without the batch that is written.
    """

    def __init__(self, name: str, vocab_size: int) -> None:
        self.name = name
        self.vocab_size = vocab_size
        self.documents = 0
        self.tokens = 0
        self._open = False
        # False while a batch is half written: a caller that swallows the error gets no shard.
        self._whole = True
        self._files: ShardFiles | None = None

    @abstractmethod
    def add(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None,
    ) -> None:
        """Write documents that were checked."""

    @abstractmethod
    def end(self, *exception: Any) -> ShardFiles | None:
        """Publish the shard and return its files; after an exception give it up."""

    def check_documents(self, ids: NDArray[np.uint32], offsets: NDArray[np.int64]) -> None:
        """Refuse a batch that cannot be written, before any of it is."""
        check_batch(ids, offsets, self.name, self.documents, self.vocab_size)

    def check_whole(self) -> None:
        """Refuse to publish a shard after a batch that failed."""
        if not self._whole:
            raise DataError(f"{self.name}: writing a batch of documents failed before")

    def __enter__(self) -> Self:
        self._open = True
        return self

    def __exit__(self, *exception: Any) -> None:
        self._open = False
        self._files = self.end(*exception)

    def write_documents(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None = None,
    ) -> None:
        """See `ShardWriter.write_documents`."""
        if not self._open:
            raise ValueError("write_documents must be called in the writer's with block")
        self.check_documents(ids, offsets)
        self._whole = False
        self.add(ids, offsets, labels)
        self.documents += offsets.size - 1
        self.tokens += ids.size
        self._whole = True

    def result(self) -> ShardFiles:
        """See `ShardWriter.result`."""
        if self._files is None:
            raise ValueError(f"{self.name} is not written: its with block has not ended well")
        return self._files


def fitting_dtype(vocab_size: int, dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the type of stored ids: the first that holds every id of the vocabulary."""
    if not 1 <= vocab_size <= MAX_VOCAB_SIZE:
        raise UsageError(
            f"vocab_size must be 1 to {MAX_VOCAB_SIZE} for token shards, got {vocab_size}"
        )
    return next(dtype for dtype in dtypes if vocab_size - 1 <= np.iinfo(dtype).max)


def check_batch(
    ids: NDArray[np.uint32], offsets: NDArray[np.int64], shard: str, first: int, vocab_size: int
) -> None:
    """Refuse a batch of documents that no shard can hold."""
    if ids.dtype != np.uint32 or ids.ndim != 1:
        raise ValueError(f"ids must be uint32[tokens], got {ids.dtype} of shape {ids.shape}")
    if offsets.dtype != np.int64 or offsets.ndim != 1 or not offsets.size:
        raise ValueError(
            f"offsets must be int64[documents + 1], got {offsets.dtype} of shape {offsets.shape}"
        )
    if offsets[0] != 0 or offsets[-1] != ids.size or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"offsets must rise from 0 to the number of ids, {ids.size}")
    lengths = np.diff(offsets)
    if lengths.size and int(lengths.max()) > MAX_DOCUMENT_TOKENS:
        document = int(np.argmax(lengths > MAX_DOCUMENT_TOKENS))
        raise DataError(
            f"{shard}: document {first + document} has "
            f"{int(lengths[document])} tokens; the format allows at most "
            f"{MAX_DOCUMENT_TOKENS} a document: divide the document"
        )
    if ids.size and int(ids.max()) >= vocab_size:
        token = int(np.argmax(ids >= vocab_size))
        document = int(np.searchsorted(offsets, token, side="right")) - 1
        raise DataError(
            f"{shard}: document {first + document}, token "
            f"{token - int(offsets[document])}: id {int(ids[token])} is not in the vocabulary; "
            f"allowed are 0 to {vocab_size - 1}"
        )

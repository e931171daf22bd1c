"""Shards of one file that begins with a table of its documents: what MDS and litdata share.

    uint32        D, the number of documents
    uint32[D+1]   where each document begins, in bytes of the file, and the end of the last
    bytes         what the format has there
    bytes         the documents, one after the other

So a file has less than 4 GiB. The ids are int32, which holds the ids of any vocabulary. The table
comes first, and a store cannot be written backwards, so the writer keeps the ids in a local
temporary file, in two bytes each where the vocabulary allows it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.document_batches import DocumentBatch, bounds_of, groups_of_documents
from bpe_beam.shards.formats.batch_writer import BatchWriter, fitting_dtype, full_shard
from bpe_beam.shards.formats.id_stream import BLOCK
from bpe_beam.shards.formats.record_file import RecordFile
from bpe_beam.shards.stored_shard import RangeFile, ShardFile
from bpe_beam.storage.hashing import HashingFile

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self


MAX_BYTES = 2**32 - 1  # the maximum bytes of a file: positions in it are uint32

MAX_TOKENS = (1 << 30) - (1 << 16)
"""The maximum tokens of a document, and about the maximum of a file."""

_UINT32 = np.dtype("<u4")


class OffsetsWriter(BatchWriter):
    """The base of `ShardWriter`s of such shards. A subclass encodes documents.

    `between` are the bytes between the table and the documents.
    """

    between: ClassVar[bytes] = b""

    def __enter__(self) -> Self:
        self._bytes = 0
        # The type of the ids in the temporary file.
        self._kept = fitting_dtype(self.vocab_size, (np.dtype("<u2"), _UINT32))
        self._ids = self.spool("the documents", "2 or 4 bytes a token")
        self._lengths = self.spool("the documents' lengths", "4 bytes a document")
        return super().__enter__()

    @abstractmethod
    def sizes_of(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[documents]: the bytes of documents."""

    @abstractmethod
    def encode(self, ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> Buffer:
        """Return the bytes of documents."""

    def add(self, batch: DocumentBatch) -> None:
        lengths = np.diff(batch.offsets)
        self._bytes += int(self.sizes_of(lengths).sum())
        documents = self.documents + lengths.size
        if 4 * (documents + 2) + len(self.between) + self._bytes > MAX_BYTES:
            limit = f"{MAX_BYTES} bytes, the maximum that the table of the format can count"
            raise full_shard(self.name, limit)
        self._ids.write(batch.ids.astype(self._kept, copy=False).data)
        self._lengths.write(lengths.astype(_UINT32).data)

    def finish(self, *others: HashingFile) -> None:
        file = self.file()
        end = 4 * (self.documents + 2) + len(self.between)
        file.write(np.array([self.documents, end], _UINT32).tobytes())
        for lengths in self._blocks_of_lengths():
            ends = end + np.cumsum(self.sizes_of(lengths))
            end = int(ends[-1])
            file.write(ends.astype(_UINT32).tobytes())
        file.write(self.between)
        width, at = self._kept.itemsize, 0
        for lengths in self._blocks_of_lengths():
            bounds = bounds_of(lengths)
            for start, stop in groups_of_documents(bounds, BLOCK):
                data = self._ids.read(at, width * int(bounds[stop] - bounds[start]))
                at += len(data)
                ids = np.frombuffer(data, self._kept).astype("<i4")
                file.write(self.encode(ids, lengths[start:stop]))

    def _blocks_of_lengths(self) -> Iterator[NDArray[np.int64]]:
        for block in self._lengths.blocks(4 * BLOCK):
            yield np.frombuffer(block, _UINT32).astype(np.int64)


class OffsetsFile(RecordFile):
    """The base of the `RecordFile`s of such shards. Making it reads the table."""

    between: ClassVar[bytes] = b""

    def __init__(self, file: RangeFile | ShardFile) -> None:
        self.url = file.url
        self._file = file
        if file.size < 8:
            raise DataError(f"{file.url}: has {file.size} bytes; the table alone has 8 or more")
        documents = int(np.frombuffer(file.read(0, 4), _UINT32)[0])
        begin = 4 * (documents + 2) + len(self.between)
        if file.size < begin:
            raise DataError(
                f"{file.url}: byte 0: a table of {documents} documents has {begin} bytes; the file "
                f"has {file.size}"
            )
        table = file.read(4, 4 * (documents + 1))
        self._starts = np.frombuffer(table, _UINT32).astype(np.int64)
        table_end = begin - len(self.between)
        if file.read(table_end, len(self.between)) != self.between:
            raise DataError(
                f"{file.url}: byte {table_end}: the description is not the one expected"
            )
        sizes = np.diff(self._starts)
        falling = np.flatnonzero(sizes < 0)
        if self._starts[0] != begin or falling.size or self._starts[-1] != file.size:
            row = 0 if self._starts[0] != begin else int(falling[0]) + 1 if falling.size else -1
            row %= documents + 1
            raise DataError(
                f"{file.url}: byte {4 + 4 * row}: entry {row} of the table is "
                f"{int(self._starts[row])}; expected entries that rise from {begin} to {file.size}"
            )
        lengths = self.lengths_of(sizes)
        if lengths.min(initial=0) < 0:
            row = int(np.argmax(lengths < 0))
            raise DataError(
                f"{file.url}: byte {int(self._starts[row])}: document {row} has {int(sizes[row])} "
                "bytes, which are no whole ids"
            )
        self.bounds = bounds_of(lengths)

    @abstractmethod
    def lengths_of(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[documents]: their tokens, from their bytes; -1 for an impossible size."""

    @abstractmethod
    def decode(
        self, data: NDArray[np.uint8], lengths: NDArray[np.int64]
    ) -> NDArray[np.uint8] | None:
        """Return the bytes of the ids of documents; None if they break the layout."""

    def ids(self, first: int, stop: int) -> NDArray[np.uint32]:
        start, end = int(self._starts[first]), int(self._starts[stop])
        data = np.frombuffer(self._file.read(start, end - start), np.uint8)
        decoded = self.decode(data, np.diff(self.bounds[first : stop + 1]))
        ids: NDArray[Any] | None = None if decoded is None else decoded.view("<i4")
        if ids is None or ids.min(initial=0) < 0:
            raise DataError(
                f"{self.url}: byte {start}: documents {first} to {stop - 1} have a damaged head, "
                "or an id below 0"
            )
        return ids.view(np.uint32)

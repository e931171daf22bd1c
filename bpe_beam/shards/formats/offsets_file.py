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

import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.batch_writer import fitting_dtype
from bpe_beam.shards.formats.id_stream import (
    BLOCK,
    SPOOL_IN_MEMORY,
    groups_of_documents,
    spool_errors,
)
from bpe_beam.shards.formats.one_file_writer import OneFileWriter
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.shards.formats.record_file import RecordFile

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Buffer, Self

    from bpe_beam.shards.stored_shard import ShardFile

MAX_BYTES = 2**32 - 1
"""The maximum bytes of a file: positions in it are uint32."""

MAX_TOKENS = (1 << 30) - (1 << 16)
"""The maximum tokens of a document, and about the maximum of a file."""

_UINT32 = np.dtype("<u4")


class OffsetsWriter(OneFileWriter):
    """The base of `ShardWriter`s of such shards. A subclass encodes documents.

    `between` are the bytes between the table and the documents.
    """

    between: ClassVar[bytes] = b""

    def __enter__(self) -> Self:
        self._bytes = 0
        self._spool, self._lengths = self._new_spool(), self._new_spool()
        return super().__enter__()

    @abstractmethod
    def sizes_of(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[documents]: the bytes of documents."""

    @abstractmethod
    def encode(self, ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> Buffer:
        """Return the bytes of documents."""

    def add(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None,
    ) -> None:
        """See `OneFileWriter.add`."""
        lengths = np.diff(offsets)
        self._bytes += int(self.sizes_of(lengths).sum())
        documents = self.documents + lengths.size
        if 4 * (documents + 2) + len(self.between) + self._bytes > MAX_BYTES:
            raise DataError(
                f"{self.name}: has more than {MAX_BYTES} bytes, the maximum that the table of the "
                "format can count",
                remedy="make {range_bytes} smaller, or {shard_tokens} where documents are arranged;"
                " divide input files that one worker must read as a whole; or tokenize to another "
                "format and convert that to more {shards}",
            )
        with self._spooling():
            self._spool.write(ids.astype(self._kept, copy=False).data)
            self._lengths.write(lengths.astype(_UINT32).data)

    def finish(self) -> None:
        """See `OneFileWriter.finish`."""
        file = self.file()
        at = 4 * (self.documents + 2) + len(self.between)
        file.write(np.array([self.documents, at], _UINT32).tobytes())
        with self._spooling():
            for lengths in self._blocks_of_lengths():
                ends = at + np.cumsum(self.sizes_of(lengths))
                at = int(ends[-1])
                file.write(ends.astype(_UINT32).tobytes())
            file.write(self.between)
            self._spool.seek(0)
            for lengths in self._blocks_of_lengths():
                bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
                for start, stop in groups_of_documents(bounds, BLOCK):
                    tokens = int(bounds[stop] - bounds[start])
                    data = self._spool.read(tokens * self._kept.itemsize)
                    ids = np.frombuffer(data, self._kept).astype("<i4")
                    file.write(self.encode(ids, lengths[start:stop]))

    @property
    def _kept(self) -> np.dtype[Any]:
        """The type of the ids in the temporary file."""
        return fitting_dtype(self.vocab_size, (np.dtype("<u2"), _UINT32))

    def _blocks_of_lengths(self) -> Iterator[NDArray[np.int64]]:
        self._lengths.seek(0)
        while block := self._lengths.read(4 * BLOCK):
            yield np.frombuffer(block, _UINT32).astype(np.int64)

    def _new_spool(self) -> tempfile.SpooledTemporaryFile[bytes]:
        return self.files.enter_context(tempfile.SpooledTemporaryFile(max_size=SPOOL_IN_MEMORY))

    def _spooling(self) -> AbstractContextManager[None]:
        return spool_errors(f"the documents of {self.name}", "2 or 4 bytes a token")


class OffsetsFile(RecordFile):
    """The base of the `RecordFile`s of such shards. Making it reads the table."""

    def __init__(self, file: RangeFile | ShardFile, between: bytes = b"") -> None:
        self.url = file.url
        self._file = file
        if file.size < 8:
            raise DataError(f"{file.url}: has {file.size} bytes; the table alone has 8 or more")
        documents = int(np.frombuffer(file.read(0, 4), _UINT32)[0])
        begin = 4 * (documents + 2) + len(between)
        if file.size < begin:
            raise DataError(
                f"{file.url}: byte 0: a table of {documents} documents has {begin} bytes; the file "
                f"has {file.size}"
            )
        table = file.read(4, 4 * (documents + 1))
        self._starts = np.frombuffer(table, _UINT32).astype(np.int64)
        if file.read(begin - len(between), len(between)) != between:
            raise DataError(
                f"{file.url}: byte {begin - len(between)}: the description is not the one expected"
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
        self.bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))

    @abstractmethod
    def lengths_of(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[documents]: their tokens, from their bytes; -1 for an impossible size."""

    @abstractmethod
    def decode(
        self, data: NDArray[np.uint8], lengths: NDArray[np.int64]
    ) -> NDArray[np.uint8] | None:
        """Return the bytes of the ids of documents; None if they break the layout."""

    def ids(self, first: int, stop: int) -> NDArray[np.uint32]:
        """See `RecordFile.ids`."""
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

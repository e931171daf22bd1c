"""Shards whose first file is a stream of ids of one width: what such formats share.

The ids of all documents are in one file, one after the other, little-endian. The lengths of the
documents are in the format's other files. The writer keeps the lengths in a local temporary file
until then, since a gigabyte of empty lines has a billion documents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.errors import DataError
from bpe_beam.shards.document_batches import DocumentBatch, check_range, groups_of_documents
from bpe_beam.shards.formats.batch_writer import BatchWriter
from bpe_beam.shards.formats.interface import MAX_DOCUMENT_TOKENS, ShardReader
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.storage import Storage

if TYPE_CHECKING:
    from typing_extensions import Self

    from bpe_beam.shards.stored_shard import IdArray, Ids, IdType, ShardFile, StoredShard

BLOCK = 1 << 18
"""The number of documents, or of tokens, that are processed at a time."""

_IDS_AT_ONCE = 1 << 21
"""The maximum ids of one write. A write of more than the buffer of a file skips the buffer."""


class IdStreamWriter(BatchWriter):
    """The base of such `ShardWriter`s. A subclass writes the documents' lengths to its files."""

    def __enter__(self) -> Self:
        self._lengths = self.spool("the document lengths", "4 bytes a document")
        return super().__enter__()

    def write_ids(self, stored: NDArray[Any]) -> None:
        """Append ids of type `dtype` to the file of ids."""
        self.file().write(stored.view(np.uint8))

    def add(self, batch: DocumentBatch) -> None:
        for start in range(0, batch.ids.size, _IDS_AT_ONCE):
            self.write_ids(batch.ids[start : start + _IDS_AT_ONCE].astype(self.dtype))
        self._lengths.write(np.diff(batch.offsets).astype("<i4").tobytes())

    def lengths(self) -> Iterator[NDArray[np.int32]]:
        """Yield the lengths of all documents in blocks."""
        for data in self._lengths.blocks(4 * BLOCK):
            yield np.frombuffer(data, dtype="<i4")

    def bounds(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield where documents begin and end, in tokens of the shard, in blocks."""
        start = 0
        for lengths in self.lengths():
            ends = start + np.cumsum(lengths, dtype=np.int64)
            start = int(ends[-1])
            yield ends - lengths, ends


class IdStreamReader(ABC):
    """The base of such `ShardReader`s. A subclass reads the heads of the files.

    The ids begin at byte `ids_at` of the file `ids`; `count` is the number of documents.
    """

    suffixes: tuple[str, ...]
    ids_at: ClassVar[int] = 0
    dtype: np.dtype[Any]
    count: int
    token_count: int

    def __init__(self, storage: Storage, folder: str, name: str) -> None:
        with ExitStack() as opened:
            # The ids last: errors name the file that says how many there should be.
            files = [
                opened.enter_context(RangeFile(storage, storage.join(folder, name + suffix)))
                for suffix in reversed(self.suffixes)
            ]
            files.reverse()
            self.ids = files[0]
            self.read_heads(*files[1:])
            self._opened = opened.pop_all()

    @abstractmethod
    def read_heads(self, *others: RangeFile) -> None:
        """Check the files, and set `dtype`, `count` and `token_count`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        self._opened.close()

    def __len__(self) -> int:
        return self.count

    @abstractmethod
    def lengths(self, start: int, stop: int) -> NDArray[np.int32]: ...

    @abstractmethod
    def document(self, index: int) -> NDArray[np.uint32]: ...

    def tokens(self, start: int, stop: int) -> NDArray[np.uint32]:
        check_range("tokens", start, stop, self.token_count)
        width = self.dtype.itemsize
        at = self.ids_at + start * width
        ids = np.frombuffer(self.ids.read(at, (stop - start) * width), self.dtype)
        if ids.size and ids.min() < 0:
            bad = int(np.argmax(ids < 0))
            raise DataError(
                f"{self.ids.url}: byte {at + bad * width}: the id is {int(ids[bad])}; expected 0 "
                "or more"
            )
        return ids.astype(np.uint32)

    def locate(self, token: int) -> tuple[int, int]:
        """Return the document of a token of the shard, and the token's position in it."""
        check_range("tokens", token, token + 1, self.token_count)
        start = 0
        for first in range(0, self.count, BLOCK):
            lengths = self.lengths(first, min(first + BLOCK, self.count))
            ends = start + np.cumsum(lengths, dtype=np.int64)
            if token < ends[-1]:
                row = int(np.searchsorted(ends, token, side="right"))
                return first + row, token - int(ends[row] - lengths[row])
            start = int(ends[-1])
        raise DataError(f"{self.ids.url}: the lengths changed while the shard was read")


class EndsReader(IdStreamReader):
    """The base of readers of shards that store where each document ends.

    A subclass sets `ends`, int64[documents]: where documents end, in tokens of the shard.
    """

    ends: IdArray

    @abstractmethod
    def describe_end(self, document: int) -> str:
        """Return the file and the position of a document's end in it, for errors."""

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
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
        check_range("documents", index, index + 1, self.count)
        begin, end = self._bounds(index, index + 1).tolist()
        return self.tokens(begin, end)

    def count_tokens(self) -> int:
        """Return the end of the last document, after a check of all lengths."""
        for start in range(0, self.count, BLOCK):
            self.lengths(start, min(start + BLOCK, self.count))
        return int(self.ends[self.count - 1 : self.count][0]) if self.count else 0

    def _bounds(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return int64[stop - start + 1]: where documents begin, and where the last one ends."""
        if start:
            return self.ends[start - 1 : stop]
        return np.concatenate((np.zeros(1, np.int64), self.ends[:stop]))


class IdStreamCheck:
    """A `ShardCheck` of the ids in their file and of their width."""

    def __init__(
        self,
        name: str,
        vocab_size: int,
        writer: type[IdStreamWriter],
        *,
        ids_at: int = 0,
        width_at: str | None = None,
    ) -> None:
        self._name = name
        self._vocab_size = vocab_size
        self._suffix = writer.suffixes[0]
        self._dtype = writer.dtype_for(vocab_size)
        self._ids_at = ids_at
        self._width_at = self._suffix if width_at is None else width_at
        self._skip = ids_at
        self._tokens = 0
        self._first: tuple[int, int] | None = None  # (position in the shard, id)
        self._count = 0

    def add(self, suffix: str, block: bytes) -> None:
        if suffix != self._suffix:
            return
        skipped = min(self._skip, len(block))
        self._skip -= skipped
        # int32 is read as uint32: a negative id is far too great.
        width = self._dtype.itemsize
        values = np.frombuffer(block, f"<u{width}", (len(block) - skipped) // width, skipped)
        if values.size and int(values.max()) >= self._vocab_size:
            bad = np.flatnonzero(values >= self._vocab_size)
            self._first = self._first or (self._tokens + int(bad[0]), int(values[bad[0]]))
            self._count += bad.size
        self._tokens += values.size

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        position = ""
        if isinstance(reader, IdStreamReader):
            if reader.dtype != self._dtype:
                # `add` read other bytes as ids.
                yield (
                    f"{self._name}{self._width_at}: ids are stored as {reader.dtype}; expected "
                    f"{self._dtype} for a vocabulary of {self._vocab_size}"
                )
                return
            if self._first:
                position = "document {}, token {}, ".format(*reader.locate(self._first[0]))
        if self._first:
            at, value = self._first
            yield (
                f"{self._name}{self._suffix}: {position}byte "
                f"{self._ids_at + at * self._dtype.itemsize}: the id is {value}; expected 0 to "
                f"{self._vocab_size - 1}; {self._count} such ids in this shard"
            )


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
        if self._stored is not None:
            ids = self._stored.document(index, dtype.num)
            if ids is not None:
                return ids
        begin, end = self._read_bounds(index, index + 1).tolist()
        if not 0 <= begin <= end <= self._tokens:
            raise self._wrong_bounds(index, begin, end)
        return self._ids[begin:end].astype(dtype)

    def documents(self, start: int, stop: int, limit: int, dtype: IdType) -> Sequence[Ids]:
        bounds = self._read_bounds(start, stop)
        falling = np.flatnonzero(bounds[1:] < bounds[:-1])
        if falling.size or bounds[0] < 0 or bounds[-1] > self._tokens:
            bad = int(falling[0]) if falling.size else 0
            raise self._wrong_bounds(start + bad, int(bounds[bad]), int(bounds[bad + 1]))
        _, count = next(groups_of_documents(bounds, limit))
        ids = self._ids[int(bounds[0]) : int(bounds[count])]
        ends = (bounds[: count + 1] - bounds[0]).tolist()
        # Each a copy, so that no document keeps its neighbours in memory.
        return [ids[begin:end].astype(dtype) for begin, end in pairwise(ends)]

    def tokens(self, start: int, stop: int, dtype: IdType) -> Ids:
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
    ids: RangeFile | ShardFile, tokens: int, dtypes: Sequence[np.dtype[Any]], source: str
) -> np.dtype[Any]:
    """Return the type of ids in a file that has nothing else; `source` says how many there are."""
    for dtype in dtypes:
        if ids.size == tokens * dtype.itemsize:
            return dtype
    *narrow, widest = (str(dtype.itemsize) for dtype in dtypes)
    widths = f"{', '.join(narrow)} or {widest}"
    raise DataError(f"{ids.url}: has {ids.size} bytes; {source} {tokens} tokens, of {widths} bytes")


def check_documents(file: ShardFile, count: int, shard: StoredShard) -> None:
    """Refuse a file that has another number of documents than the manifest says."""
    if count != shard.entry.documents:
        raise DataError(
            f"{file.url}: has {count} documents; the manifest says {shard.entry.documents}"
        )

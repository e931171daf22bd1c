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
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.errors import DataError
from bpe_beam.shards.document_batches import DocumentBatch, check_range, groups_of_documents
from bpe_beam.shards.formats.batch_writer import BatchWriter
from bpe_beam.shards.formats.interface import MAX_DOCUMENT_TOKENS, ShardFormat, ShardReader
from bpe_beam.shards.stored_shard import RangeFile
from bpe_beam.storage import Storage

if TYPE_CHECKING:
    from typing_extensions import Self

    from bpe_beam.shards.stored_shard import IdArray, Ids, IdType, ShardFile, StoredShard

BLOCK = 1 << 18  # the number of documents, or of tokens, that are processed at a time

_UINT32 = np.dtype(np.uint32)

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


class IdStream(ABC):
    """The documents of such a shard: a `ShardReader`, or a `ShardAccess`. A subclass reads heads.

    `ids` is the file of the ids, and `dtype` the type of stored ids.
    """

    suffixes: ClassVar[tuple[str, ...]]  # the ends of the files' names: of the ids first
    ids_at: ClassVar[int] = 0  # the first byte of the ids in their file
    # The bound of documents that is not stored: the first, which is 0, or the last.
    missing: ClassVar[Literal["first", "last"] | None] = None
    unit = 1  # what bounds count: 1 for tokens, else the bytes of an id
    bounds: IdArray  # int64, where documents begin, and where the last one ends
    count: int  # the number of documents

    def __init__(
        self, files: Sequence[RangeFile | ShardFile], shard: StoredShard | None = None
    ) -> None:
        self.ids, *others = files
        self._strict = shard is None
        self._opened = ExitStack()
        self.read_heads(*others)
        if shard is None:
            self.token_count = self.count_tokens()
            source = f"the {self.count} documents of {others[0].url} have"
        elif self.count != shard.entry.documents:
            raise DataError(
                f"{others[0].url}: has {self.count} documents; the manifest says "
                f"{shard.entry.documents}"
            )
        else:
            self.token_count, source = shard.entry.tokens, "the manifest says"
        self.dtype = self._fitting_width(source)
        self._ids = self.ids.array(self.dtype, self.token_count, self.ids_at)
        self._entries: memoryview | None = None
        # Documents of mapped files by one call, in a third of the time that numpy takes.
        self._stored: _native.StoredIds | None = None
        if isinstance(self.bounds, np.ndarray) and self.count:
            self._entries = self.bounds.view(np.uint8).data.cast("q")
            if isinstance(self._ids, np.ndarray):
                self._stored = _native.StoredIds(
                    self._ids,
                    self.bounds.view(np.uint8),
                    unit=self.unit,
                    without_first=self.missing == "first",
                    without_last=self.missing == "last",
                )

    @classmethod
    def open(cls, storage: Storage, folder: str, name: str) -> Self:
        """Open a shard as a `ShardReader`: reads all bounds once, and checks the whole layout."""
        with ExitStack() as opened:
            # The ids last: errors name the file that says how many there should be.
            files = [
                opened.enter_context(RangeFile(storage, storage.join(folder, name + suffix)))
                for suffix in reversed(cls.suffixes)
            ]
            stream = cls(files[::-1])
            stream._opened = opened.pop_all()
        return stream

    @classmethod
    def open_stored(cls, shard: StoredShard) -> Self:
        """Open a shard as a `ShardAccess`: reads heads, and compares them with the manifest."""
        return cls([shard.file(suffix) for suffix in cls.suffixes], shard)

    @abstractmethod
    def read_heads(self, *others: RangeFile | ShardFile) -> None:
        """Check the heads of the files after the ids, and set `count` and `bounds`."""

    @abstractmethod
    def dtypes(self) -> Sequence[np.dtype[Any]]:
        """Return the types that ids may have by the heads; their file's size decides."""

    @abstractmethod
    def describe_bound(self, document: int) -> str:
        """Return the file and the position in it that says where a document ends, for errors."""

    def count_tokens(self) -> int:
        """Return the end of the last document, after a check of all bounds."""
        tokens = 0
        for start in range(0, self.count, BLOCK):
            tokens += int(self.lengths(start, min(start + BLOCK, self.count)).sum(dtype=np.int64))
        return tokens

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files of a `ShardReader`."""
        self._opened.close()

    def __len__(self) -> int:
        return self.count

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        check_range("documents", start, stop, self.count)
        bounds = self._read_bounds(start, stop)
        lengths = bounds[1:] - bounds[:-1]
        wrong = (lengths < 0) | (lengths > MAX_DOCUMENT_TOKENS)
        if wrong.any():
            bad = int(np.argmax(wrong))
            raise DataError(
                f"{self.describe_bound(start + bad)}: document {start + bad} ends at token "
                f"{int(bounds[bad + 1])}; expected {int(bounds[bad])}, where it begins, or at most "
                f"{MAX_DOCUMENT_TOKENS} more"
            )
        return lengths.astype(np.int32)

    def tokens(self, start: int, stop: int, dtype: IdType = _UINT32) -> Ids:
        if not self._strict:
            return self._ids[start:stop].astype(dtype)
        check_range("tokens", start, stop, self.token_count)
        ids = self._ids[start:stop]
        if ids.size and ids.min() < 0:
            bad = int(np.argmax(ids < 0))
            raise DataError(
                f"{self.ids.url}: byte {self.ids_at + (start + bad) * self.dtype.itemsize}: the id "
                f"is {int(ids[bad])}; expected 0 or more"
            )
        return ids.astype(dtype)

    def document(self, index: int, dtype: IdType = _UINT32) -> Ids:
        if self._stored is not None:
            ids = self._stored.document(index, dtype.num)
            if ids is not None:
                return ids
        check_range("documents", index, index + 1, self.count)
        begin, end = self._read_bounds(index, index + 1).tolist()
        if not 0 <= begin <= end <= self.token_count:
            raise self._wrong_bounds(index, begin, end)
        return self.tokens(begin, end, dtype)

    def documents(self, start: int, stop: int, limit: int, dtype: IdType) -> Sequence[Ids]:
        bounds = self._read_bounds(start, stop)
        falling = np.flatnonzero(bounds[1:] < bounds[:-1])
        if falling.size or bounds[0] < 0 or bounds[-1] > self.token_count:
            bad = int(falling[0]) if falling.size else 0
            raise self._wrong_bounds(start + bad, int(bounds[bad]), int(bounds[bad + 1]))
        _, count = next(groups_of_documents(bounds, limit))
        ids = self._ids[int(bounds[0]) : int(bounds[count])]
        ends = (bounds[: count + 1] - bounds[0]).tolist()
        # Each a copy, so that no document keeps its neighbours in memory.
        return [ids[begin:end].astype(dtype) for begin, end in pairwise(ends)]

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        """See `ShardAccess.starts`. Cost: two binary searches."""
        bounds = self._read_bounds(self._first_from(start), self._first_from(stop))
        return bounds[:-1][bounds[:-1] < bounds[1:]]

    def locate(self, token: int) -> tuple[int, int]:
        """Return the document of a token of the shard, and the token's position in it."""
        check_range("tokens", token, token + 1, self.token_count)
        document = self._first_from(token + 1) - 1
        return document, token - int(self._read_bounds(document, document)[0])

    def _first_from(self, token: int) -> int:
        """Return the first document that begins at a token of the shard, or after it."""
        skip = int(self.missing == "first")
        if token <= 0:
            return 0
        if self._entries is not None:
            return skip + bisect_left(self._entries, token * self.unit, 0, self.count - skip)

        def begin(document: int) -> int:
            return int(self._read_bounds(document, document)[0])

        return bisect_left(range(self.count), token, skip, key=begin)

    def _read_bounds(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return int64[stop - start + 1]: where documents begin, and where the last one ends."""
        skip = int(self.missing == "first")
        bounds = self.bounds[max(start - skip, 0) : stop + 1 - skip].astype(np.int64)
        if start < skip:
            bounds = np.concatenate((np.zeros(1, np.int64), bounds))
        if bounds.size == stop - start and self.missing == "last":
            bounds = np.append(bounds, self.token_count * self.unit)
        return bounds // self.unit if self.unit > 1 else bounds

    def _fitting_width(self, source: str) -> np.dtype[Any]:
        """Return the type of ids by the size of their file; `source` says how many there are."""
        dtypes = self.dtypes()
        for dtype in dtypes:
            if self.ids.size == self.ids_at + self.token_count * dtype.itemsize:
                return dtype
        *narrow, widest = (str(dtype.itemsize) for dtype in dtypes)
        widths = f"{', '.join(narrow)} or {widest}" if narrow else widest
        raise DataError(
            f"{self.ids.url}: has {self.ids.size} bytes; {source} {self.token_count} tokens, of "
            f"{widths} bytes{f', and a header of {self.ids_at}' if self.ids_at else ''}"
        )

    def _wrong_bounds(self, document: int, begin: int, end: int) -> DataError:
        return DataError(
            f"{self.ids.url}: document {document} goes from token {begin} to {end}; expected a "
            f"range within 0 to {self.token_count}: the shard is damaged, and `verify` says where"
        )


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
        if isinstance(reader, IdStream):
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


def stream_format(
    name: str,
    writer: type[IdStreamWriter],
    stream: type[IdStream],
    *,
    width_at: str | None = None,
    **more: Any,
) -> ShardFormat:
    """Return the format of such shards; see `IdStreamCheck` for `width_at`."""
    return ShardFormat(
        name=name,
        suffixes=writer.suffixes,
        writer=writer,
        reader=stream.open,
        access=stream.open_stored,
        check=partial(IdStreamCheck, writer=writer, ids_at=stream.ids_at, width_at=width_at),
        **more,
    )

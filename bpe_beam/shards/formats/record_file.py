"""Shards that are one file of a record a document: what reading such formats shares.

A format says where records are and how their ids are read, see `RecordFile`; readers and check are
the same for all.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards.formats.id_check import IdCheck
from bpe_beam.shards.formats.id_stream import check_range, spool_errors
from bpe_beam.shards.formats.interface import ShardFormat, ShardWriter
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.shards.stored_shard import (
    Ids,
    IdType,
    MappedFile,
    ShardAccess,
    ShardFile,
    StoredShard,
    check_counts,
)
from bpe_beam.storage import Storage

if TYPE_CHECKING:
    from typing_extensions import Self

_TOKENS = 1 << 18


class RecordFile(ABC):
    """The records of a file. The constructor refuses a file that breaks the layout.

    `bounds` is int64[documents + 1], where documents begin and end, in tokens.
    """

    url: str
    bounds: NDArray[np.int64]

    @abstractmethod
    def ids(self, first: int, stop: int) -> NDArray[np.uint32]:
        """Return the ids of documents."""

    @property
    def token_count(self) -> int:
        """The number of ids."""
        return int(self.bounds[-1])

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def locate(self, token: int) -> tuple[int, int]:
        """Return the document of a token of the shard, and the token's position in it."""
        check_range("tokens", token, token + 1, self.token_count)
        row = int(np.searchsorted(self.bounds, token, side="right")) - 1
        return row, token - int(self.bounds[row])


class RowSpool:
    """Rows of numbers in a local temporary file, until all are known; a context manager."""

    def __init__(self, columns: int, what: str) -> None:
        self._columns, self._what = columns, what
        self._count = 0

    def __enter__(self) -> Self:
        with ExitStack() as opened, self._errors():
            self._file = opened.enter_context(tempfile.NamedTemporaryFile())
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def add(self, *columns: NDArray[np.int64] | int) -> None:
        """Append rows; a number is one for all of them."""
        rows = np.stack(np.broadcast_arrays(*columns), axis=-1).astype(np.int64).reshape(-1)
        with self._errors():
            self._file.write(rows.data)
        self._count += rows.size

    def rows(self) -> NDArray[np.int64]:
        """Return int64[rows, columns], mapped: they outlive the file, and need no descriptor."""
        with self._errors():
            self._file.flush()
            mapped = MappedFile(self._file.name).array(np.dtype(np.int64), self._count)
        return mapped[:].reshape(-1, self._columns)

    def _errors(self) -> AbstractContextManager[None]:
        return spool_errors(self._what, f"{8 * self._columns} bytes a document")


OpenRecords = Callable[[RangeFile | ShardFile], RecordFile]


class RecordReader:
    """A `ShardReader`."""

    def __init__(
        self, storage: Storage, folder: str, name: str, *, suffix: str, open_records: OpenRecords
    ) -> None:
        with ExitStack() as opened:
            self._file = opened.enter_context(
                RangeFile(storage, storage.join(folder, name + suffix))
            )
            self._records = open_records(self._file)
            opened.pop_all()
        self._read: tuple[int, int, NDArray[np.uint32]] | None = None
        self.token_count = self._records.token_count

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        del self._records
        self._read = None
        self._file.close()

    def __len__(self) -> int:
        return len(self._records)

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        """See `ShardReader.lengths`."""
        check_range("documents", start, stop, len(self))
        return np.diff(self._records.bounds[start : stop + 1]).astype(np.int32)

    def tokens(self, start: int, stop: int) -> NDArray[np.uint32]:
        """See `ShardReader.tokens`. Cost: reads all documents that the range touches."""
        check_range("tokens", start, stop, self.token_count)
        if start == stop:
            return np.empty(0, np.uint32)
        first = self.locate(start)[0]
        ids = self._ids(first, self.locate(stop - 1)[0] + 1)
        begin = int(self._records.bounds[first])
        return ids[start - begin : stop - begin]

    def document(self, index: int) -> NDArray[np.uint32]:
        """See `ShardReader.document`."""
        check_range("documents", index, index + 1, len(self))
        return self._ids(index, index + 1)

    def locate(self, token: int) -> tuple[int, int]:
        """See `IdReader.locate`."""
        return self._records.locate(token)

    def id_batches(self) -> Iterator[NDArray[np.uint32]]:
        """See `IdReader.id_batches`."""
        for start in range(0, self.token_count, _TOKENS):
            yield self.tokens(start, min(start + _TOKENS, self.token_count))

    def _ids(self, first: int, stop: int) -> NDArray[np.uint32]:
        """Return the ids of documents; the result of the last call is cached."""
        if self._read is None or self._read[:2] != (first, stop):
            self._read = None
            self._read = first, stop, self._records.ids(first, stop)
        return self._read[2]


class RecordAccess:
    """A `ShardAccess`."""

    def __init__(self, shard: StoredShard, *, suffix: str, open_records: OpenRecords) -> None:
        self._records = open_records(shard.file(suffix))
        check_counts(self._records.url, len(self._records), self._records.token_count, shard)

    def document(self, index: int, dtype: IdType) -> Ids:
        """See `ShardAccess.document`."""
        return self._records.ids(index, index + 1).astype(dtype)

    def documents(self, start: int, stop: int, limit: int, dtype: IdType) -> Sequence[Ids]:
        """See `ShardAccess.documents`."""
        bounds = self._records.bounds[start : stop + 1]
        count = max(int(np.searchsorted(bounds, bounds[0] + limit, side="right")) - 1, 1)
        ids = self._records.ids(start, start + count)
        ends = (bounds[: count + 1] - bounds[0]).tolist()
        return [ids[begin:end].astype(dtype) for begin, end in pairwise(ends)]

    def tokens(self, start: int, stop: int, dtype: IdType) -> Ids:
        """See `ShardAccess.tokens`. Cost: reads all documents that the range touches."""
        if start >= stop:
            return np.empty(0, dtype)
        first = self._records.locate(start)[0]
        begin = int(self._records.bounds[first])
        ids = self._records.ids(first, self._records.locate(stop - 1)[0] + 1)
        return ids[start - begin : stop - begin].astype(dtype)

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        """See `ShardAccess.starts`."""
        bounds = self._records.bounds
        low, high = np.searchsorted(bounds[:-1], (start, stop))
        part = bounds[low : high + 1]
        return part[:-1][part[:-1] < part[1:]]


def record_format(
    name: str,
    suffix: str,
    writer: Callable[..., ShardWriter],
    open_records: OpenRecords,
    max_document_tokens: int,
    access: Callable[[StoredShard], ShardAccess] | None = None,
    **more: Any,
) -> ShardFormat:
    """Return the format of shards that are files of one kind."""
    return ShardFormat(
        name=name,
        suffixes=(suffix,),
        max_document_tokens=max_document_tokens,
        writer=partial(writer, suffix=suffix),
        reader=partial(RecordReader, suffix=suffix, open_records=open_records),
        check=partial(IdCheck, suffix=suffix),
        access=access or partial(RecordAccess, suffix=suffix, open_records=open_records),
        **more,
    )

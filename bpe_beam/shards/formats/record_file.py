"""Shards that are one file of a record a document: what reading such formats shares.

A format says where records are and how their ids are read, see `RecordFile`; readers and check are
the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards import stored_shard
from bpe_beam.shards.document_batches import check_range, groups_of_documents
from bpe_beam.shards.formats.batch_writer import BatchWriter
from bpe_beam.shards.formats.interface import ShardFormat, ShardReader
from bpe_beam.storage import Storage

_TOKENS = 1 << 18
_UINT32 = np.dtype(np.uint32)


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


OpenRecords = Callable[[stored_shard.RangeFile | stored_shard.ShardFile], RecordFile]


class RecordReader:
    """The documents of such a shard: a `ShardReader`, or a `ShardAccess`, which has no `file`."""

    token_count: int

    def __init__(self, records: RecordFile, file: stored_shard.RangeFile | None = None) -> None:
        self._records, self._file = records, file
        self._read: tuple[int, int, NDArray[np.uint32]] | None = None

    @classmethod
    def open(
        cls, storage: Storage, folder: str, name: str, *, suffix: str, open_records: OpenRecords
    ) -> RecordReader:
        """Open a shard as a `ShardReader`."""
        with ExitStack() as opened:
            file = opened.enter_context(
                stored_shard.RangeFile(storage, storage.join(folder, name + suffix))
            )
            reader = cls(open_records(file), file)
            reader.token_count = reader._records.token_count
            opened.pop_all()
        return reader

    @classmethod
    def open_stored(
        cls, shard: stored_shard.StoredShard, *, suffix: str, open_records: OpenRecords
    ) -> RecordReader:
        """Open a shard as a `ShardAccess`."""
        records = open_records(shard.file(suffix))
        stored_shard.check_counts(records.url, len(records), records.token_count, shard)
        return cls(records)

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file of a `ShardReader`."""
        del self._records
        self._read = None
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return len(self._records)

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        check_range("documents", start, stop, len(self))
        return np.diff(self._records.bounds[start : stop + 1]).astype(np.int32)

    def document(self, index: int, dtype: stored_shard.IdType = _UINT32) -> stored_shard.Ids:
        check_range("documents", index, index + 1, len(self))
        return self._ids(index, index + 1).astype(dtype)

    def documents(
        self, start: int, stop: int, limit: int, dtype: stored_shard.IdType
    ) -> Sequence[stored_shard.Ids]:
        bounds = self._records.bounds[start : stop + 1]
        _, count = next(groups_of_documents(bounds, limit))
        ids = self._records.ids(start, start + count)
        ends = (bounds[: count + 1] - bounds[0]).tolist()
        return [ids[begin:end].astype(dtype) for begin, end in pairwise(ends)]

    def tokens(
        self, start: int, stop: int, dtype: stored_shard.IdType = _UINT32
    ) -> stored_shard.Ids:
        """See `ShardReader.tokens`. Cost: reads all documents that the range touches."""
        check_range("tokens", start, stop, self._records.token_count)
        if start == stop:
            return np.empty(0, dtype)
        first = self.locate(start)[0]
        ids = self._ids(first, self.locate(stop - 1)[0] + 1)
        begin = int(self._records.bounds[first])
        return ids[start - begin : stop - begin].astype(dtype)

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        return stored_shard.starts_within(self._records.bounds, start, stop)

    def locate(self, token: int) -> tuple[int, int]:
        return self._records.locate(token)

    def id_batches(self) -> Iterator[NDArray[np.uint32]]:
        for start in range(0, self.token_count, _TOKENS):
            yield self.tokens(start, min(start + _TOKENS, self.token_count))

    def _ids(self, first: int, stop: int) -> NDArray[np.uint32]:
        """Return the ids of documents; a `ShardReader` caches the result of the last call."""
        if self._file is None:
            return self._records.ids(first, stop)
        if self._read is None or self._read[:2] != (first, stop):
            self._read = None
            self._read = first, stop, self._records.ids(first, stop)
        return self._read[2]


@runtime_checkable
class IdReader(Protocol):
    """A `ShardReader` that reads all ids of its shard in batches."""

    def id_batches(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the ids of the shard."""

    def locate(self, token: int) -> tuple[int, int]:
        """Return the document of a token of the shard, and the token's position in it."""


class IdCheck:
    """A `ShardCheck` of the ids. `problems` needs an `IdReader`."""

    def __init__(self, name: str, vocab_size: int, *, suffix: str) -> None:
        self.file = name + suffix
        self.vocab_size = vocab_size

    def add(self, suffix: str, block: bytes) -> None:
        """See `ShardCheck.add`: a block alone has no ids."""

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        if not isinstance(reader, IdReader):
            return
        first, count, before = None, 0, 0
        for ids in reader.id_batches():
            bad = np.flatnonzero(ids >= self.vocab_size)
            if bad.size and first is None:
                first = before + int(bad[0]), int(ids[bad[0]])
            count += bad.size
            before += ids.size
        if first is not None:
            document, token = reader.locate(first[0])
            yield (
                f"{self.file}: document {document}, token {token}: the id is {first[1]}; expected "
                f"0 to {self.vocab_size - 1}; {count} such ids in this shard"
            )


def record_format(
    name: str,
    writer: type[BatchWriter],
    open_records: OpenRecords,
    max_document_tokens: int,
    access: Callable[[stored_shard.StoredShard], stored_shard.ShardAccess] | None = None,
    **more: Any,
) -> ShardFormat:
    """Return the format of shards that are files of one kind."""
    file: dict[str, Any] = {"suffix": writer.suffixes[0], "open_records": open_records}
    return ShardFormat(
        name=name,
        suffixes=writer.suffixes,
        max_document_tokens=max_document_tokens,
        writer=writer,
        reader=partial(RecordReader.open, **file),
        check=partial(IdCheck, suffix=writer.suffixes[0]),
        access=access or partial(RecordReader.open_stored, **file),
        **more,
    )

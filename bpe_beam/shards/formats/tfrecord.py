"""TFRecord shards: a `.tfrecord` with one record a document.

A record is the document's length in bytes, a tf.train.Example, and checksums (masked CRC-32C) of
both. The Example has one feature, `input_ids`, a list of int64. Documents end with their records,
never by an end-of-text id. The format has no index: our readers read a file once when they open it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.errors import DataError
from bpe_beam.shards.formats.id_stream import check_range, spool_errors
from bpe_beam.shards.formats.interface import ShardFormat, ShardReader
from bpe_beam.shards.formats.one_file_writer import OneFileWriter
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.shards.stored_shard import (
    Ids,
    IdType,
    MappedFile,
    ShardFile,
    StoredShard,
    check_counts,
)
from bpe_beam.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIX = ".tfrecord"

MAX_TOKENS = 400_000_000
"""The most tokens of a document: an Example is below 2 GiB, and an id has up to five bytes."""

_WINDOW = 4 << 20
_TOKENS = 1 << 18


class TfRecordWriter(OneFileWriter):
    """A `ShardWriter`."""

    def add(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None,
    ) -> None:
        """See `OneFileWriter.add`."""
        lengths = np.diff(offsets)
        if lengths.max(initial=0) > MAX_TOKENS:
            document = int(np.argmax(lengths > MAX_TOKENS))
            raise DataError(
                f"{self.name}: document {self.documents + document} has {int(lengths[document])} "
                f"tokens; the format allows at most {MAX_TOKENS} a document: divide the document"
            )
        row = 0
        while row < lengths.size:
            stop = int(np.searchsorted(offsets, offsets[row] + _TOKENS, side="right")) - 1
            stop = min(max(stop, row + 1), row + _TOKENS)
            part = ids[offsets[row] : offsets[stop]]
            self.file().write(_native.tf_records(part, offsets[row : stop + 1] - offsets[row]))
            row = stop


class _Records:
    """The records of a file: where they are, and reading them.

    Making it reads the whole file once, and refuses every violation of the layout. The ends of the
    documents, in tokens and in bytes, are kept in a local temporary file, 16 bytes a document,
    which is mapped and then removed: it needs no file descriptor.

    Args:
        file: The open file.

    Attributes:
        bounds: int64[documents + 1, 2]: where documents begin, in tokens and in bytes.

    Raises:
        DataError: The file breaks the layout; names the byte.
    """

    def __init__(self, file: RangeFile | ShardFile) -> None:
        self._file = file
        with self._spooling(), tempfile.NamedTemporaryFile() as spool:
            spool.write(bytes(16))
            rows = 1
            for bounds in self._read_bounds():
                spool.write(bounds.tobytes())
                rows += len(bounds)
            spool.flush()
            found = MappedFile(spool.name).array(np.dtype(np.int64), 2 * rows)[:]
        self.bounds = found.reshape(rows, 2)

    @property
    def url(self) -> str:
        """The file, without secrets."""
        return self._file.url

    @property
    def token_count(self) -> int:
        """The number of ids."""
        return int(self.bounds[-1, 0])

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def locate(self, token: int) -> tuple[int, int]:
        """Return the document of a token of the shard, and the token's position in it."""
        check_range("tokens", token, token + 1, self.token_count)
        row = int(np.searchsorted(self.bounds[:, 0], token, side="right")) - 1
        return row, token - int(self.bounds[row, 0])

    def ids(self, first: int, stop: int) -> NDArray[np.uint32]:
        """Return the ids of documents.

        Args:
            first: The first document.
            stop: The document behind the last.

        Raises:
            DataError: The file cannot be read, or was changed.
        """
        start, end = int(self.bounds[first, 1]), int(self.bounds[stop, 1])
        ids, _, ends, _, flaw = _native.read_tf_records(self._file.read(start, end - start))
        if flaw or ends.size != stop - first or ids.size != self._tokens_of(first, stop):
            raise DataError(f"{self.url}: byte {start}: changed while it was read")
        return ids

    def _tokens_of(self, first: int, stop: int) -> int:
        return int(self.bounds[stop, 0] - self.bounds[first, 0])

    def _read_bounds(self) -> Iterator[NDArray[np.int64]]:
        """Yield where documents end, of a window of the file at a time."""
        file = self._file
        at = tokens = documents = 0
        size = _WINDOW
        while at < file.size:
            data = file.read(at, min(size, file.size - at))
            _, lengths, ends, needed, flaw = _native.read_tf_records(data)
            yield np.stack((tokens + np.cumsum(lengths), at + ends), axis=1)
            documents += lengths.size
            tokens += int(lengths.sum())
            at += int(ends[-1]) if ends.size else 0
            if flaw:
                raise DataError(
                    f"{file.url}: byte {at}: record {documents}: {_native.TF_RECORD_FLAWS[flaw]}"
                )
            if needed > file.size - at:
                raise DataError(
                    f"{file.url}: byte {at}: record {documents} has at least {needed} bytes; the "
                    f"file has {file.size - at} more"
                )
            size = max(_WINDOW, needed)

    def _spooling(self) -> AbstractContextManager[None]:
        return spool_errors(f"the ends of the documents of {self._file.url}", "16 bytes a document")


class TfRecordReader:
    """A `ShardReader`. Opening reads the whole file once, see `_Records`.

    Args:
        storage: The storage client.
        folder: Path or URL of the shard's folder.
        name: The shard's name, without a suffix.

    Attributes:
        token_count: See `ShardReader`.

    Raises:
        DataError: The file is missing or breaks the layout; names the byte.
    """

    def __init__(self, storage: Storage, folder: str, name: str) -> None:
        with ExitStack() as opened:
            self._file = RangeFile(storage, storage.join(folder, name + SUFFIX))
            opened.callback(self._file.close)
            self._records = _Records(self._file)
            opened.pop_all()
        self._read: tuple[int, int, NDArray[np.uint32]] | None = None
        self.token_count = self._records.token_count

    def __enter__(self) -> TfRecordReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, and remove the temporary one."""
        del self._records
        self._read = None
        self._file.close()

    def __len__(self) -> int:
        return len(self._records)

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        """See `ShardReader.lengths`."""
        check_range("documents", start, stop, len(self))
        return np.diff(self._records.bounds[start : stop + 1, 0]).astype(np.int32)

    def tokens(self, start: int, stop: int) -> NDArray[np.uint32]:
        """See `ShardReader.tokens`. Cost: reads all documents that the range touches."""
        check_range("tokens", start, stop, self.token_count)
        if start == stop:
            return np.empty(0, np.uint32)
        first = self.locate(start)[0]
        ids = self._ids(first, self.locate(stop - 1)[0] + 1)
        begin = int(self._records.bounds[first, 0])
        return ids[start - begin : stop - begin]

    def document(self, index: int) -> NDArray[np.uint32]:
        """See `ShardReader.document`."""
        check_range("documents", index, index + 1, len(self))
        return self._ids(index, index + 1)

    def locate(self, token: int) -> tuple[int, int]:
        """Return the document of a token of the shard, and the token's position in it."""
        return self._records.locate(token)

    def _ids(self, first: int, stop: int) -> NDArray[np.uint32]:
        """Return the ids of documents; those of the last call are kept."""
        if self._read is None or self._read[:2] != (first, stop):
            self._read = None
            self._read = first, stop, self._records.ids(first, stop)
        return self._read[2]


class TfRecordAccess:
    """A `ShardAccess`. Opening reads the whole file once, see `_Records`.

    Args:
        shard: The shard.

    Raises:
        DataError: The file is missing, breaks the layout, or is not what the manifest says.
    """

    def __init__(self, shard: StoredShard) -> None:
        self._records = _Records(shard.file(SUFFIX))
        check_counts(self._records.url, len(self._records), self._records.token_count, shard)

    def document(self, index: int, dtype: IdType) -> Ids:
        """See `ShardAccess.document`."""
        return self._records.ids(index, index + 1).astype(dtype)

    def documents(self, start: int, stop: int, limit: int, dtype: IdType) -> Sequence[Ids]:
        """See `ShardAccess.documents`."""
        bounds = self._records.bounds[start : stop + 1, 0]
        count = max(int(np.searchsorted(bounds, bounds[0] + limit, side="right")) - 1, 1)
        ids = self._records.ids(start, start + count)
        ends = (bounds[: count + 1] - bounds[0]).tolist()
        return [ids[begin:end].astype(dtype) for begin, end in pairwise(ends)]

    def tokens(self, start: int, stop: int, dtype: IdType) -> Ids:
        """See `ShardAccess.tokens`. Cost: reads all documents that the range touches."""
        if start >= stop:
            return np.empty(0, dtype)
        first = self._records.locate(start)[0]
        begin = int(self._records.bounds[first, 0])
        ids = self._records.ids(first, self._records.locate(stop - 1)[0] + 1)
        return ids[start - begin : stop - begin].astype(dtype)

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        """See `ShardAccess.starts`."""
        begins = self._records.bounds[:, 0]
        low, high = np.searchsorted(begins[:-1], (start, stop))
        part = begins[low : high + 1]
        return part[:-1][part[:-1] < part[1:]]


class TfRecordCheck:
    """A `ShardCheck` of the ids.

    Args:
        name: The shard's name.
        vocab_size: One more than the greatest id allowed.
    """

    def __init__(self, name: str, vocab_size: int) -> None:
        self._file = name + SUFFIX
        self._vocab_size = vocab_size

    def add(self, suffix: str, block: bytes) -> None:
        """See `ShardCheck.add`: a block alone has no ids."""

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        """See `ShardCheck.problems`."""
        if not isinstance(reader, TfRecordReader):
            return
        first, count = None, 0
        for start in range(0, reader.token_count, _TOKENS):
            ids = reader.tokens(start, min(start + _TOKENS, reader.token_count))
            bad = np.flatnonzero(ids >= self._vocab_size)
            if bad.size and first is None:
                first = start + int(bad[0]), int(ids[bad[0]])
            count += bad.size
        if first is not None:
            document, token = reader.locate(first[0])
            yield (
                f"{self._file}: document {document}, token {token}: the id is {first[1]}; expected "
                f"0 to {self._vocab_size - 1}; {count} such ids in this shard"
            )


FORMAT = ShardFormat(
    name="tfrecord",
    suffixes=(SUFFIX,),
    max_document_tokens=MAX_TOKENS,
    writer=partial(TfRecordWriter, suffix=SUFFIX),
    reader=TfRecordReader,
    check=TfRecordCheck,
    access=TfRecordAccess,
)

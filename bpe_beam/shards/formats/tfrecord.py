"""TFRecord shards: a `.tfrecord` with one record a document.

A record is the document's length in bytes, a tf.train.Example, and checksums (masked CRC-32C) of
both. The Example has one feature, `input_ids`, a list of int64. Documents end with their records,
never by an end-of-text id. The format has no index: our readers read a file once when they open it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.errors import DataError
from bpe_beam.shards.document_batches import DocumentBatch, groups_of_documents
from bpe_beam.shards.formats.batch_writer import BatchWriter, check_lengths
from bpe_beam.shards.formats.record_file import RecordFile, record_format
from bpe_beam.shards.formats.spool import mapped_rows
from bpe_beam.shards.stored_shard import RangeFile, ShardFile

MAX_TOKENS = 400_000_000
"""The maximum tokens of a document: an Example is below 2 GiB, and an id has up to five bytes."""

_TOKENS = 1 << 18
_WINDOW = 4 << 20


class ExampleWriter(BatchWriter):
    """The base of `ShardWriter`s of Examples, here and in ArrayRecord files."""

    @abstractmethod
    def write_records(self, ids: NDArray[np.uint32], offsets: NDArray[np.int64]) -> None:
        """Write documents: about as many tokens as are processed at a time, or one document."""

    def add(self, batch: DocumentBatch) -> None:
        ids, offsets, _ = batch
        check_lengths(np.diff(offsets), self.name, self.documents, MAX_TOKENS)
        for row, stop in groups_of_documents(offsets, _TOKENS):
            part = ids[offsets[row] : offsets[stop]]
            self.write_records(part, offsets[row : stop + 1] - offsets[row])


class TfRecordWriter(ExampleWriter):
    """A `ShardWriter`."""

    suffixes = (".tfrecord",)

    def write_records(self, ids: NDArray[np.uint32], offsets: NDArray[np.int64]) -> None:
        self.file().write(_native.tf_records(ids, offsets))


class _Records(RecordFile):
    """A `RecordFile`.

    Making it reads the whole file once, and refuses every violation of the layout. The ends of the
    documents, in tokens and in bytes, are kept in a local temporary file, 16 bytes a document,
    which is mapped and then removed: it needs no file descriptor.
    """

    def __init__(self, file: RangeFile | ShardFile) -> None:
        self.url = file.url
        self._file = file
        ends = mapped_rows(self._read_ends(), 2, f"the ends of the documents of {self.url}")
        self.bounds, self._bytes = ends.T

    def ids(self, first: int, stop: int) -> NDArray[np.uint32]:
        start, end = int(self._bytes[first]), int(self._bytes[stop])
        ids, _, ends, _, flaw = _native.read_tf_records(self._file.read(start, end - start))
        tokens = int(self.bounds[stop] - self.bounds[first])
        if flaw or ends.size != stop - first or ids.size != tokens:
            raise DataError(f"{self.url}: byte {start}: changed while it was read")
        return ids

    def _read_ends(self) -> Iterator[NDArray[np.int64]]:
        """Yield int64[n, 2]: 0, and where documents end, in tokens and in bytes, by windows."""
        yield np.zeros((1, 2), np.int64)
        file = self._file
        at = tokens = documents = 0
        size = _WINDOW
        while at < file.size:
            data = file.read(at, min(size, file.size - at))
            _, lengths, ends, needed, flaw = _native.read_tf_records(data)
            yield np.column_stack((tokens + np.cumsum(lengths), at + ends))
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


FORMAT = record_format("tfrecord", TfRecordWriter, _Records, MAX_TOKENS)

"""Words as packed symbols: their files on storage between merge rounds, and their counts.

A packed word is its symbols' ids as LEB128 varints, one after another: a segment of a word is a
range of its bytes. A file of words is a compressed Arrow IPC stream of batches (`word`, `count`);
it is read and written a batch at a time, so that memory never has more of it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.counts.word_table import CountTable, buffers_of, data_errors
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile, require_sha256

PACKED_SCHEMA = pa.schema([("word", pa.large_binary()), ("count", pa.int64())])

BATCH_WORDS = 1 << 16
"""The number of words of a batch that is made from a larger table."""

_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")

Columns = tuple[Any, npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Packed words for native functions: their bytes one after another, int64[words + 1] the start of
each and the end of the last, int64[words] their counts."""


def columns_of(batch: pa.RecordBatch) -> Columns:
    """Return a batch as native functions take it, without a copy."""
    return *buffers_of(batch.column("word")), batch.column("count").to_numpy()


def batch_of(columns: Columns) -> pa.RecordBatch:
    """Return packed words that a native function returned as a batch."""
    data, offsets, counts = columns
    words = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(counts), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    return pa.RecordBatch.from_arrays([words, pa.array(counts, pa.int64())], schema=PACKED_SCHEMA)


def symbols_of(columns: Columns) -> int:
    """Return the number of symbols of packed words: each ends with a byte below 128."""
    data, offsets, _ = columns
    bytes_of_words = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])]
    return int(np.count_nonzero(bytes_of_words < 0x80))


def checked(what: str) -> AbstractContextManager[None]:
    """Return a context whose native functions raise a DataError for `what` that is not packed."""
    return data_errors(f"{what}: no packed words")


class PackedCounts(CountTable):
    """Packed words, or segments of them, and how often each occurs."""

    def __init__(self) -> None:
        super().__init__(_native.WordTable(False))

    def add(self, columns: Columns) -> None:
        """Add words with their counts."""
        with data_errors("packed words cannot be added"):
            self._table.add_words(*columns)

    def _batch(self, columns: Sequence[Any]) -> pa.RecordBatch:
        offsets, data, counts, *_ = columns
        return batch_of((data, offsets, counts))


def to_stream(batch: pa.RecordBatch) -> bytes:
    """Return a batch as the bytes of a compressed Arrow stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def from_stream(data: bytes, schema: pa.Schema, what: str) -> pa.RecordBatch:
    """Return the batch that `to_stream` encoded."""
    (batch,) = _batches(io.BytesIO(data), schema, what)
    return batch


@dataclass
class WordsWriter:
    """A file of words while it is written, and the numbers of words and symbols so far."""

    file: HashingFile
    stream: pa.RecordBatchStreamWriter
    words: int = 0
    symbols: int = 0

    def write(self, columns: Columns) -> None:
        """Append words."""
        batch = batch_of(columns)
        if batch.num_rows:
            self.stream.write_batch(batch)
        self.words += batch.num_rows
        self.symbols += symbols_of(columns)

    def info(self, name: str) -> FileInfo:
        """Return the description of the complete file under this name."""
        return FileInfo.written(name, self.file)


@contextmanager
def write_words(storage: Storage, url: str) -> Iterator[WordsWriter]:
    """Yield the writer of a file of words, which appears whole, or not at all."""
    with storage.create(url) as file:
        hashing = HashingFile(file)
        sink = pa.PythonFile(hashing, mode="w")
        with pa.ipc.new_stream(sink, PACKED_SCHEMA, options=_OPTIONS) as stream:
            yield WordsWriter(hashing, stream)


def read_words(storage: Storage, url: str, sha256: str) -> Iterator[Columns]:
    """Yield the words of a file, a batch at a time.

    The last batch comes before the file's hash is known: read to the end, and use nothing before.
    """
    with storage.open(url) as file:
        hashing = _HashingReader(file)
        for batch in _batches(hashing, PACKED_SCHEMA, url):
            yield columns_of(batch)
        hashing.read()
        require_sha256(hashing.hash.hexdigest(), sha256, url)


class _HashingReader(io.RawIOBase):
    """A file that is hashed while it is read from its begin to its end, as Arrow reads it."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        data = self._file.read(size)
        self.hash.update(data)
        return data

    def readable(self) -> bool:
        """Return True."""
        return True


def _batches(file: Any, schema: pa.Schema, what: str) -> Iterator[pa.RecordBatch]:
    try:
        with pa.ipc.open_stream(pa.PythonFile(file, mode="r")) as reader:
            if not reader.schema.equals(schema):
                raise DataError(f"{what}: expected the columns {schema.names}")
            for batch in reader:
                batch.validate(full=True)
                yield batch
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{what} cannot be read: {error}") from error

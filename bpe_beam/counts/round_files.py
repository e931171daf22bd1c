"""Words as packed symbols: their files on storage between merge rounds, and counts of their pairs.

A packed word is its symbols' ids as LEB128 varints, one after another: a segment of a word is a
range of its bytes. A file of words is a compressed Arrow IPC stream of batches (`word`, `count`);
it is read and written a batch at a time, so that memory never has more of it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.counts import word_table
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile, require_sha256
from bpe_beam.tokenizer.components.byte_level import to_chars

PACKED_SCHEMA = pa.schema([("word", pa.large_binary()), ("count", pa.int64())])
PAIR_SCHEMA = pa.schema([("left", pa.uint32()), ("right", pa.uint32()), ("count", pa.int64())])

BATCH_WORDS = 1 << 16
"""The number of words of a batch that is made from a larger table."""

_CODE_OF_BYTE = np.array([ord(char) for char in to_chars(bytes(range(256)))], np.uint32)

_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")

Columns = tuple[Any, NDArray[np.int64], NDArray[np.int64]]
"""Packed words for native functions: their bytes one after another, int64[words + 1] the start of
each and the end of the last, int64[words] their counts."""


def columns_of(batch: pa.RecordBatch) -> Columns:
    """Return a batch as native functions take it, without a copy."""
    return *word_table.buffers_of(batch.column("word")), batch.column("count").to_numpy()


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
    return word_table.data_errors(f"{what}: no packed words")


class PackedCounts(word_table.CountTable):
    """Packed words, or segments of them, and how often each occurs."""

    def __init__(self) -> None:
        super().__init__(_native.WordTable(False))

    def add(self, columns: Columns) -> None:
        """Add words with their counts."""
        with word_table.data_errors("packed words cannot be added"):
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


class WordsWriter(Struct):
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
        hashing = HashingFile(file)
        for batch in _batches(hashing, PACKED_SCHEMA, url):
            yield columns_of(batch)
        hashing.read()
        require_sha256(hashing.sha256, sha256, url)


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


# ---- pairs of adjacent symbols ----


class PairCounts(word_table.CountTable):
    """Adjacent pairs of symbols, ids below 2^32, and how often they occur.

    A table takes 26 to 51 bytes a pair, half as much again while it grows, and 32 bytes a pair more
    while `blocks` runs. It can be pickled, 16 bytes a pair. After a DataError the table has a part
    of the added pairs.
    """

    def __init__(self) -> None:
        super().__init__(_native.PairTable())

    def __reduce__(self) -> tuple[Callable[[bytes], PairCounts], tuple[bytes]]:
        return PairCounts.from_bytes, (self.to_bytes(),)

    def add_words(
        self,
        words: Columns,
        widths: NDArray[np.uint32] | None = None,
        max_length: int | None = None,
    ) -> None:
        """Count the adjacent pairs of packed words; each of overlapping pairs counts."""
        self._add(self._table.add_words, *words, widths, max_length)

    def add_texts(self, words: pa.Array, counts: pa.Array, symbols: str) -> None:
        """Count the adjacent pairs of words that are text."""
        data, offsets = word_table.string_buffers(words)
        first, last = int(offsets[0]), int(offsets[-1])
        utf8 = np.frombuffer(data, np.uint8)[first:last]
        offsets = offsets - first
        if symbols == "bytes":
            codes = _CODE_OF_BYTE[utf8]
        else:
            codes, offsets = word_table.code_points(utf8, offsets)
        packed = _native.pack_symbols(codes, offsets)
        self._add(self._table.add_words, *packed, counts.to_numpy())

    def add_block(self, block: pa.RecordBatch) -> None:
        """Add pairs with their counts (`PAIR_SCHEMA`)."""
        with word_table.data_errors("pairs cannot be counted"):
            self._table.add(*(column.to_numpy() for column in block.columns))

    def add(self, other: PairCounts) -> None:
        """Add another table's pairs."""
        self._add(self._table.add_table, other._table)

    def _batch(self, columns: Sequence[Any]) -> pa.RecordBatch:
        return _pairs(columns)

    def frequent(self, floor: int, limit: int) -> tuple[pa.RecordBatch, int]:
        """Return the pairs with the highest counts."""
        *columns, minimum = self._table.frequent(floor, limit)
        return _pairs(columns), int(minimum)

    def best(self, limit: int, ranks: NDArray[np.uint32] | None = None) -> pa.RecordBatch:
        """Return the first pairs in the order in which they would be merged."""
        return _pairs(self._table.best(limit, ranks))

    def to_batch(self) -> pa.RecordBatch:
        """Return all pairs (`PAIR_SCHEMA`), sorted by left and right, in one batch."""
        return _pairs(self._table.split(1)[0])

    def to_bytes(self) -> bytes:
        """Return all pairs, sorted; equal tables give equal bytes, 16 for a pair."""
        return word_table.encode_block(self.to_batch())

    @staticmethod
    def from_bytes(data: bytes) -> PairCounts:
        """Return the table that `to_bytes` encoded."""
        counts = PairCounts()
        counts.add_block(decode_pairs(data))
        return counts

    @staticmethod
    def _add(add: Callable[..., None], *columns: Any) -> None:
        with word_table.data_errors("pairs cannot be counted"):
            add(*columns)


def decode_pairs(data: bytes | pa.Buffer) -> pa.RecordBatch:
    """Return the block of pairs that `encode_block` encoded, or raise DataError."""
    with word_table.data_errors("a block of pair counts cannot be read"):
        block = pa.ipc.read_record_batch(pa.py_buffer(data), PAIR_SCHEMA)
        block.validate(full=True)
    return block


def _pairs(columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(each) for each in columns], schema=PAIR_SCHEMA)

"""Words as packed symbols: how they stand on storage between merge rounds, and are added up.

A packed word is its symbols' ids as LEB128 varints, one after another: a piece of a word is a piece
of its bytes. A file of words is an Arrow IPC stream of batches (`word`, `count`), compressed; it is
read and written a batch at a time, so that nobody holds more of it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.counts.word_table import BLOCK_BYTES, block_bounds
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile

PACKED_SCHEMA = pa.schema([("word", pa.large_binary()), ("count", pa.int64())])

BATCH_WORDS = 1 << 16
"""Words of one batch, where we cut them."""

_ROW_BYTES = 16
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")

Columns = tuple[Any, npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Bytes of packed words one after another, int64[words + 1] where each begins, int64[words] counts:
what the native functions take and give."""


def columns_of(batch: pa.RecordBatch) -> Columns:
    """A batch for the native functions, without a copy."""
    words = batch.column("word")
    _, offsets, data = words.buffers()
    counts = batch.column("count").to_numpy()
    if len(words) == 0 or data is None:
        return pa.py_buffer(b""), np.zeros(len(words) + 1, np.int64), counts
    bounds = np.frombuffer(offsets, np.int64)[words.offset : words.offset + len(words) + 1]
    return data, bounds, counts


def batch_of(columns: Columns) -> pa.RecordBatch:
    """What a native function gave, as a batch."""
    data, offsets, counts = columns
    words = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(counts), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    return pa.RecordBatch.from_arrays([words, pa.array(counts, pa.int64())], schema=PACKED_SCHEMA)


def symbols_of(columns: Columns) -> int:
    """How many symbols packed words have: each ends with a byte below 128."""
    data, offsets, _ = columns
    bytes_of_words = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])]
    return int(np.count_nonzero(bytes_of_words < 0x80))


@contextmanager
def checked(what: str) -> Iterator[None]:
    """Names the words that a native function finds to be no packed ones.

    Raises:
        DataError: They are not.
    """
    try:
        yield
    except (ValueError, OverflowError) as error:
        raise DataError(f"{what}: no packed words: {error}") from error


class PackedCounts:
    """Packed words, or pieces of them, and how often each occurs.

    Not for several threads at once; they would wait for each other.
    """

    def __init__(self) -> None:
        self._table = _native.WordTable(False)

    def __len__(self) -> int:
        """Different ones."""
        return len(self._table)

    @property
    def memory_bytes(self) -> int:
        """Bytes that the table holds."""
        return int(self._table.memory_bytes)

    def add(self, columns: Columns) -> None:
        """Adds counted ones; the same may come again.

        Raises:
            DataError: A count below 1, an empty word, or a sum beyond 64 bits.
        """
        try:
            self._table.add_words(*columns)
        except (ValueError, OverflowError) as error:
            raise DataError(f"packed words cannot be added: {error}") from error

    def clear(self) -> None:
        """Forgets every word and gives the memory back."""
        self._table.clear()

    def blocks(
        self, shards: int, max_bytes: int = BLOCK_BYTES
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """All by shard, a fixed hash of their bytes, sorted, in blocks of at most `max_bytes`.

        Equal tables give equal blocks, however they were filled.
        """
        for shard, (offsets, data, counts, *_) in enumerate(self._table.split(shards)):
            if len(counts) == 0:
                continue
            whole = batch_of((data, offsets, counts))
            for start, end in block_bounds(offsets, max_bytes, _ROW_BYTES):
                yield shard, whole.slice(start, end - start)


def to_stream(batch: pa.RecordBatch) -> bytes:
    """A batch of any columns as the bytes of a compressed Arrow stream of its own."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def from_stream(data: bytes, schema: pa.Schema, what: str) -> pa.RecordBatch:
    """The batch that `to_stream` wrote.

    Args:
        data: Its bytes.
        schema: The columns that are expected.
        what: Names the bytes in errors.

    Raises:
        DataError: The bytes are no such batch.
    """
    (batch,) = _batches(io.BytesIO(data), schema, what)
    return batch


@dataclass
class WordsWriter:
    """A file of words while it is written.

    Attributes:
        words: How many so far.
        symbols: Their symbols.
    """

    file: BinaryIO
    words: int = 0
    symbols: int = 0

    def __post_init__(self) -> None:
        """Begins the stream."""
        self._hashing = HashingFile(self.file)
        self._writer = pa.ipc.new_stream(
            pa.PythonFile(self._hashing, mode="w"), PACKED_SCHEMA, options=_OPTIONS
        )

    def write(self, columns: Columns) -> None:
        """Appends words."""
        batch = batch_of(columns)
        if batch.num_rows:
            self._writer.write_batch(batch)
        self.words += batch.num_rows
        self.symbols += symbols_of(columns)

    def info(self, name: str) -> FileInfo:
        """Return the description of the file, once it is complete, under this name."""
        return FileInfo(name, self._hashing.bytes, self._hashing.sha256)


@contextmanager
def write_words(storage: Storage, url: str) -> Iterator[WordsWriter]:
    """Writes a file of words; it appears whole, or not at all."""
    with storage.create(url) as file:
        writer = WordsWriter(file)
        yield writer
        writer._writer.close()


def read_words(storage: Storage, url: str, sha256: str) -> Iterator[Columns]:
    """The words of a file, a batch at a time.

    The last batch is given before the file's hash is known: who reads must read to the end, and
    believe nothing before.

    Raises:
        DataError: It is not the file that was written.
    """
    with storage.open(url) as file:
        hashing = _HashingReader(file)
        for batch in _batches(hashing, PACKED_SCHEMA, url):
            yield columns_of(batch)
        hashing.read()
        if hashing.hash.hexdigest() != sha256:
            raise DataError(f"{url} is not the file that was written: its SHA-256 differs")


class _HashingReader:
    """A file that is read from its begin to its end, hashed by the way."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Reads on."""
        data = self._file.read(size)
        self.hash.update(data)
        return data

    def readable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Nothing: whoever opened the file closes it."""


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

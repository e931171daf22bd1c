"""Megatron shards: a `.bin` of token ids and an `.idx` that says where each document begins.

The layout is that of `megatron/core/datasets/indexed_dataset.py` (Megatron-LM), little-endian:

    .bin   the ids of all documents one after the other, uint16 or int32
    .idx   9 bytes   magic `MMIDIDX\\0\\0`
           uint64    version, 1
           uint8     dtype code: 8 is uint16, 4 is int32
           uint64    S, the number of sequences
           uint64    D, the length of the document index
           int32[S]  tokens a sequence
           int64[S]  byte offset of each sequence in the .bin
           int64[D]  the first sequence of each document, and S at the end

A document is one sequence here, so D is S + 1 and the document index counts from 0 to S. Documents
end by the index alone, never by an end-of-text id. No pair is written without tokens: Megatron
cannot map an empty file, and its `GPTDataset` cannot take samples from documents without tokens.
Earlier versions of this package wrote such pairs, with one id 0 that no document has.

The writer keeps the lengths in a local temporary file, since a gigabyte of empty lines has a
billion documents.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.limits import MAX_VOCAB_SIZE
from bpe_beam.shards.formats.interface import ShardFiles, ShardFormat, ShardReader
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile

MAX_DOCUMENT_TOKENS = 2**31 - 1
"""The most tokens of a document: its length is an int32."""

MAGIC, VERSION = b"MMIDIDX\0\0", 1
HEADER = struct.Struct("<9sQBQQ")
DTYPES: dict[int, np.dtype[Any]] = {4: np.dtype("<i4"), 8: np.dtype("<u2")}
_CODES = {dtype: code for code, dtype in DTYPES.items()}
BLOCK = 1 << 18
"""The number of documents, or of tokens, that are processed at a time."""

_IDS, _INDEX = ".bin", ".idx"
_SPOOL_IN_MEMORY = 4 << 20


def token_dtype(vocab_size: int) -> np.dtype[Any]:
    """Return the type of stored ids: uint16 if every id is below 65,536, else int32."""
    if not 1 <= vocab_size <= MAX_VOCAB_SIZE:
        raise UsageError(
            f"vocab_size must be 1 to {MAX_VOCAB_SIZE} for Megatron shards, got {vocab_size}"
        )
    return DTYPES[8 if vocab_size <= 2**16 else 4]


class MegatronWriter:
    """A `ShardWriter`.

    `.bin` becomes visible before `.idx`. After an exception, a `.bin` remains only if the `.idx`
    alone could not be written: an attempt never removes a file that another attempt may have
    published.

    Args:
        storage: The storage client.
        folder: Path or URL of an existing folder.
        name: The shard's name, without a suffix.
        vocab_size: One more than the greatest id, 1 to `MAX_VOCAB_SIZE`; decides the width of an
            id.

    Raises:
        UsageError: `vocab_size` is out of range.
    """

    def __init__(self, storage: Storage, folder: str, name: str, vocab_size: int) -> None:
        self._storage = storage
        self._name = name
        self._bin_url = storage.join(folder, name + _IDS)
        self._idx_url = storage.join(folder, name + _INDEX)
        self._vocab_size = vocab_size
        self._dtype = token_dtype(vocab_size)
        self._documents = 0
        self._tokens = 0
        # False while a batch is half written: a caller that swallows the error gets no shard.
        self._whole = True
        self._open = False
        self._bin: HashingFile | None = None
        self._bin_stack = ExitStack()
        self._result: ShardFiles | None = None

    def __enter__(self) -> MegatronWriter:
        # Closed by __exit__.
        self._lengths = tempfile.SpooledTemporaryFile(max_size=_SPOOL_IN_MEMORY)
        self._open = True
        return self

    def write_documents(self, ids: NDArray[np.uint32], offsets: NDArray[np.int64]) -> None:
        """See `ShardWriter.write_documents`; each document is one sequence."""
        if not self._open:
            raise ValueError("write_documents must be called in the writer's with block")
        self._check_documents(ids, offsets)
        lengths = np.diff(offsets)
        self._whole = False
        for start in range(0, ids.size, BLOCK):
            stored = ids[start : start + BLOCK].astype(self._dtype)
            self._ids_file().write(stored.view(np.uint8))
        with self._spooling():
            self._lengths.write(lengths.astype("<i4").tobytes())
        self._documents += lengths.size
        self._tokens += ids.size
        self._whole = True

    def result(self) -> ShardFiles:
        """See `ShardWriter.result`."""
        if self._result is None:
            raise ValueError(f"{self._name} is not written: its with block has not ended well")
        return self._result

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        with self._lengths:
            if kind is not None:
                self._bin_stack.__exit__(kind, error, trace)
                return
            with self._bin_stack:
                if not self._whole:
                    raise DataError(f"{self._name}: writing a batch of documents failed before")
                self._result = ShardFiles(self._documents, self._tokens, self._publish())

    def _check_documents(self, ids: NDArray[np.uint32], offsets: NDArray[np.int64]) -> None:
        """Refuse a batch that cannot be written, before any of it is."""
        if ids.dtype != np.uint32 or ids.ndim != 1:
            raise ValueError(f"ids must be uint32[tokens], got {ids.dtype} of shape {ids.shape}")
        if offsets.dtype != np.int64 or offsets.ndim != 1 or not offsets.size:
            raise ValueError(
                f"offsets must be int64[documents + 1], got {offsets.dtype} of shape "
                f"{offsets.shape}"
            )
        if offsets[0] != 0 or offsets[-1] != ids.size or np.any(offsets[1:] < offsets[:-1]):
            raise ValueError(f"offsets must rise from 0 to the number of ids, {ids.size}")
        lengths = np.diff(offsets)
        if lengths.size and int(lengths.max()) > MAX_DOCUMENT_TOKENS:
            document = int(np.argmax(lengths > MAX_DOCUMENT_TOKENS))
            raise DataError(
                f"{self._name}: document {self._documents + document} has "
                f"{int(lengths[document])} tokens; the format allows at most "
                f"{MAX_DOCUMENT_TOKENS} a document: divide the document"
            )
        if ids.size and int(ids.max()) >= self._vocab_size:
            token = int(np.argmax(ids >= self._vocab_size))
            document = int(np.searchsorted(offsets, token, side="right")) - 1
            raise DataError(
                f"{self._name}: document {self._documents + document}, token "
                f"{token - int(offsets[document])}: id {int(ids[token])} is not in the vocabulary; "
                f"allowed are 0 to {self._vocab_size - 1}"
            )

    def _ids_file(self) -> HashingFile:
        """Return the open `.bin`; it is opened at the first call."""
        if self._bin is None:
            self._bin = HashingFile(
                self._bin_stack.enter_context(self._storage.create(self._bin_url))
            )
        return self._bin

    def _publish(self) -> tuple[FileInfo, ...]:
        if self._bin is None:
            return ()
        with self._storage.create(self._idx_url) as file:
            idx = HashingFile(file)
            self._write_index(idx)
            file.flush()
            # The index is complete under its attempt's name: two renames are left that can fail.
            # A reader that finds the .idx finds the .bin. If the second rename fails, the .bin
            # stays: it may be the one that another attempt at the same shard has published.
            self._bin_stack.pop_all().close()
        return (
            FileInfo.written(self._name + _IDS, self._bin),
            FileInfo.written(self._name + _INDEX, idx),
        )

    def _write_index(self, idx: HashingFile) -> None:
        count = self._documents
        idx.write(HEADER.pack(MAGIC, VERSION, _CODES[self._dtype], count, count + 1))
        for lengths in self._spooled():
            idx.write(lengths.tobytes())
        start = 0
        for lengths in self._spooled():
            ends = start + np.cumsum(lengths, dtype=np.int64)
            idx.write(((ends - lengths) * self._dtype.itemsize).astype("<i8").tobytes())
            start = int(ends[-1])
        for first in range(0, count + 1, BLOCK):
            idx.write(np.arange(first, min(first + BLOCK, count + 1), dtype="<i8").tobytes())

    def _spooled(self) -> Iterator[NDArray[np.int32]]:
        """Yield the lengths of all documents in blocks."""
        with self._spooling():
            self._lengths.seek(0)
            while data := self._lengths.read(4 * BLOCK):
                yield np.frombuffer(data, dtype="<i4")

    @contextmanager
    def _spooling(self) -> Iterator[None]:
        """Name the temporary file in the errors of the block."""
        try:
            yield
        except OSError as error:
            raise DataError(
                f"{tempfile.gettempdir()}: the temporary file with the document lengths of "
                f"{self._name} failed: {error.strerror or error}; it needs 4 bytes a document, and "
                "the variable TMPDIR chooses another folder"
            ) from error


class MegatronReader:
    """A `ShardReader`.

    Opening reads the whole index once (20 bytes a document) and refuses every violation of the
    layout; memory never depends on a number in a file before it was compared with the files' sizes.

    Args:
        storage: The storage client.
        folder: Path or URL of the shard's folder.
        name: The shard's name, without a suffix.

    Attributes:
        dtype: The type of stored ids, `uint16` or `int32`.
        token_count: See `ShardReader`.

    Raises:
        DataError: A file is missing or breaks the layout; names the file and the byte.
    """

    def __init__(self, storage: Storage, folder: str, name: str) -> None:
        idx_url = storage.join(folder, name + _INDEX)
        with ExitStack() as opened:
            self._idx = RangeFile(storage, idx_url)
            opened.callback(self._idx.close)
            self._bin = RangeFile(storage, storage.join(folder, name + _IDS))
            opened.callback(self._bin.close)
            self.dtype, self._count = self._read_header()
            # Handles of their own, so that each of the three arrays is read straight through.
            with (
                closing(RangeFile(storage, idx_url)) as pointers,
                closing(RangeFile(storage, idx_url)) as documents,
            ):
                self.token_count = self._check_index(pointers, documents)
            opened.pop_all()

    def __enter__(self) -> MegatronReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close both files."""
        self._idx.close()
        self._bin.close()

    def __len__(self) -> int:
        return self._count

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        """See `ShardReader.lengths`."""
        _check_range("documents", start, stop, self._count)
        at = HEADER.size + 4 * start
        lengths: NDArray[np.int32] = np.frombuffer(
            self._idx.read(at, 4 * (stop - start)), dtype="<i4"
        )
        if lengths.size and lengths.min() < 0:
            bad = int(np.argmax(lengths < 0))
            raise DataError(
                f"{self._idx.url}: byte {at + 4 * bad}: document {start + bad} has the length "
                f"{int(lengths[bad])}; expected 0 or more"
            )
        return lengths

    def tokens(self, start: int, stop: int) -> NDArray[np.uint32]:
        """See `ShardReader.tokens`."""
        _check_range("tokens", start, stop, self.token_count)
        width = self.dtype.itemsize
        ids = np.frombuffer(self._bin.read(start * width, (stop - start) * width), self.dtype)
        if ids.size and ids.min() < 0:
            bad = int(np.argmax(ids < 0))
            raise DataError(
                f"{self._bin.url}: byte {(start + bad) * width}: the id is {int(ids[bad])}; "
                "expected 0 or more"
            )
        return ids.astype(np.uint32)

    def document(self, index: int) -> NDArray[np.uint32]:
        """See `ShardReader.document`. Cost: two short reads of the index."""
        length = int(self.lengths(index, index + 1)[0])
        at = HEADER.size + 4 * self._count + 8 * index
        pointer = int.from_bytes(self._idx.read(at, 8), "little")
        start = pointer // self.dtype.itemsize
        return self.tokens(start, start + length)

    def locate(self, token: int) -> tuple[int, int]:
        """Return the document of a token of the shard, and the token's position in it."""
        _check_range("tokens", token, token + 1, self.token_count)
        start = 0
        for first in range(0, self._count, BLOCK):
            lengths = self.lengths(first, min(first + BLOCK, self._count))
            ends = start + np.cumsum(lengths, dtype=np.int64)
            if token < ends[-1]:
                row = int(np.searchsorted(ends, token, side="right"))
                return first + row, token - int(ends[row] - lengths[row])
            start = int(ends[-1])
        raise DataError(f"{self._idx.url}: the lengths changed while they were read")

    def _read_header(self) -> tuple[np.dtype[Any], int]:
        idx = self._idx
        if idx.size < HEADER.size:
            raise DataError(f"{idx.url}: has {idx.size} bytes; the header alone has {HEADER.size}")
        magic, version, code, sequences, documents = HEADER.unpack(idx.read(0, HEADER.size))
        if magic != MAGIC:
            raise DataError(f"{idx.url}: byte 0: the magic is {magic!r}; expected {MAGIC!r}")
        if version != VERSION:
            raise DataError(f"{idx.url}: byte 9: the version is {version}; expected {VERSION}")
        if code not in DTYPES:
            raise DataError(
                f"{idx.url}: byte 17: the dtype code is {code}; expected 8 (uint16) or 4 (int32)"
            )
        if documents != sequences + 1:
            raise DataError(
                f"{idx.url}: byte 26: the document index has {documents} entries; expected "
                f"{sequences + 1}, one sequence a document and the end"
            )
        size = HEADER.size + 12 * sequences + 8 * documents
        if idx.size != size:
            raise DataError(
                f"{idx.url}: byte 18: {sequences} sequences make an index of {size} bytes; the "
                f"file has {idx.size}"
            )
        return DTYPES[code], sequences

    def _check_index(self, pointers: RangeFile, documents: RangeFile) -> int:
        """Compare the arrays of the index side by side, and the `.bin`; return the tokens."""
        pointers_at = HEADER.size + 4 * self._count
        documents_at = pointers_at + 8 * self._count
        width = self.dtype.itemsize
        tokens = 0
        for first in range(0, self._count, BLOCK):
            stop = min(first + BLOCK, self._count)
            numbers = np.arange(first, stop, dtype=np.int64)
            _check_array(documents, documents_at, "entry of the document index", first, numbers)
            lengths = self.lengths(first, stop)
            ends = tokens + np.cumsum(lengths, dtype=np.int64)
            starts = (ends - lengths) * width
            _check_array(pointers, pointers_at, "pointer of document", first, starts)
            tokens = int(ends[-1])
            # Before the next block, so that no sum outgrows 64 bits.
            if tokens * width > self._bin.size:
                raise DataError(
                    f"{self._bin.url}: has {self._bin.size} bytes; the first {stop} documents of "
                    f"the index alone need {tokens * width}"
                )
        last = np.array([self._count], dtype=np.int64)
        _check_array(documents, documents_at, "entry of the document index", self._count, last)
        if max(tokens, 1) * width != self._bin.size:
            raise DataError(
                f"{self._bin.url}: has {self._bin.size} bytes; the {self._count} documents of the "
                f"index have {tokens} tokens of {width} bytes, {tokens * width} bytes"
            )
        return tokens


def _check_range(what: str, start: int, stop: int, count: int) -> None:
    """Refuse a range of documents or tokens that is not within a shard."""
    if not 0 <= start <= stop <= count:
        raise IndexError(f"{what} must be a range within 0 to {count}, got {start} to {stop}")


def _check_array(
    file: RangeFile, array_at: int, what: str, first: int, expected: NDArray[np.int64]
) -> None:
    """Read a block of an int64 array, from its entry `first` on, and compare it."""
    at = array_at + 8 * first
    found = np.frombuffer(file.read(at, 8 * expected.size), dtype="<i8")
    differs = found != expected
    if differs.any():
        bad = int(np.argmax(differs))
        raise DataError(
            f"{file.url}: byte {at + 8 * bad}: the {what} {first + bad} is {int(found[bad])}; "
            f"expected {int(expected[bad])}"
        )


class MegatronCheck:
    """A `ShardCheck` of the ids in a `.bin` and their width.

    Args:
        name: The shard's name.
        vocab_size: One more than the greatest id allowed.
    """

    def __init__(self, name: str, vocab_size: int) -> None:
        self._name = name
        self._vocab_size = vocab_size
        self._dtype = token_dtype(vocab_size)
        self._tokens = 0
        self._first: tuple[int, int] | None = None  # (position in the shard, id)
        self._count = 0

    def add(self, suffix: str, block: bytes) -> None:
        """See `ShardCheck.add`."""
        if suffix != _IDS:
            return
        # int32 is read as uint32: a negative id is one that is far too great.
        width = self._dtype.itemsize
        values = np.frombuffer(block, f"<u{width}", len(block) // width)
        if values.size and int(values.max()) >= self._vocab_size:
            bad = np.flatnonzero(values >= self._vocab_size)
            self._first = self._first or (self._tokens + int(bad[0]), int(values[bad[0]]))
            self._count += bad.size
        self._tokens += values.size

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        """See `ShardCheck.problems`."""
        position = ""
        if isinstance(reader, MegatronReader):
            if reader.dtype != self._dtype:
                # `add` took something else for ids.
                yield (
                    f"{self._name}{_INDEX}: byte 17: ids are stored as {reader.dtype}; expected "
                    f"{self._dtype} for a vocabulary of {self._vocab_size}"
                )
                return
            if self._first:
                position = "document {}, token {}, ".format(*reader.locate(self._first[0]))
        if self._first:
            at, value = self._first
            yield (
                f"{self._name}{_IDS}: {position}byte {at * self._dtype.itemsize}: the id is "
                f"{value}; expected 0 to {self._vocab_size - 1}; {self._count} such ids in this "
                "shard"
            )


FORMAT = ShardFormat(
    name="megatron",
    suffixes=(_IDS, _INDEX),
    max_document_tokens=MAX_DOCUMENT_TOKENS,
    writer=MegatronWriter,
    reader=MegatronReader,
    check=MegatronCheck,
)

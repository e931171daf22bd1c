"""Megatron shards: a `.bin` of token ids and an `.idx` that says where each document stands.

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
end by the index alone, never by an end-of-text id. A .bin without tokens holds one id 0 that no
document has: an empty file cannot be mapped.

Both classes hold blocks of fixed size. The writer spools the lengths to a local temporary file,
since a gigabyte of empty lines has a billion documents.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.formats import MAX_VOCAB_SIZE, ShardFiles
from bpe_beam.shards.formats.documents import check_documents, check_range
from bpe_beam.shards.formats.files import RangeFile, ShardFile
from bpe_beam.storage import Storage

MAX_DOCUMENT_TOKENS = 2**31 - 1
"""A length is an int32."""

_MAGIC, _VERSION = b"MMIDIDX\0\0", 1
_HEADER = struct.Struct("<9sQBQQ")
_DTYPES: dict[int, np.dtype[Any]] = {4: np.dtype("<i4"), 8: np.dtype("<u2")}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
# Documents, or tokens, held at a time: some megabytes whichever array it is.
_BLOCK = 1 << 18
_SPOOL_IN_MEMORY = 4 << 20


def token_dtype(vocab_size: int) -> np.dtype[Any]:
    """Returns how ids are stored: uint16 while every id is below 65,536, else int32.

    Args:
        vocab_size: one more than the greatest id; 1 to 2^31.

    Raises:
        UsageError: if `vocab_size` is out of range.
    """
    if not 1 <= vocab_size <= MAX_VOCAB_SIZE:
        raise UsageError(
            f"vocab_size is {vocab_size}; Megatron shards hold ids of a vocabulary of 1 to "
            f"{MAX_VOCAB_SIZE} entries"
        )
    return _DTYPES[8 if vocab_size <= 2**16 else 4]


class MegatronWriter:
    """Writes one shard as a stream; a context manager.

    When the `with` block ends well, `.bin` and then `.idx` become visible, each as a whole; when
    it ends with an exception, neither does. Equal documents give equal bytes.

        with MegatronWriter(storage, "tokens", "shard-00000-of-00001", 50_257) as writer:
            writer.write_documents(ids, offsets)
        writer.result()
    """

    def __init__(self, storage: Storage, folder: str, name: str, vocab_size: int) -> None:
        """Prepares a writer; nothing is opened before the `with` block.

        Args:
            storage: where to write.
            folder: path or URL of an existing folder.
            name: the shard's name, without a suffix.
            vocab_size: one more than the greatest id; decides the width of an id.

        Raises:
            UsageError: if `vocab_size` is not in 1 to 2^31.
        """
        self._storage = storage
        self._name = name
        self._bin_url = storage.join(folder, f"{name}.bin")
        self._idx_url = storage.join(folder, f"{name}.idx")
        self._vocab_size = vocab_size
        self._dtype = token_dtype(vocab_size)
        self._documents = 0
        self._tokens = 0
        # False while a batch is half written: a caller that swallows the error gets no shard.
        self._whole = True
        self._open = False
        self._result: ShardFiles | None = None

    def __enter__(self) -> MegatronWriter:
        # Closed by __exit__.
        self._lengths = tempfile.SpooledTemporaryFile(max_size=_SPOOL_IN_MEMORY)
        self._bin_context = self._storage.create(self._bin_url)
        self._bin = ShardFile(self._bin_context.__enter__())
        self._open = True
        return self

    def write_documents(self, ids: NDArray[np.uint32], offsets: NDArray[np.int64]) -> None:
        """Appends documents, each as one sequence.

        Args:
            ids: uint32 [tokens], the ids of all documents one after the other.
            offsets: int64 [documents + 1], where each document begins in `ids`; from 0 to
                `len(ids)`, never falling. Equal neighbours are an empty document.

        Raises:
            DataError: if a document has more than 2^31 - 1 tokens, an id is not below
                `vocab_size` (both name the document, counted from 0 in the shard), or the bytes
                cannot be written.
            ValueError: if the arrays do not belong together, or outside the `with` block.
        """
        if not self._open:
            raise ValueError("write_documents outside the writer's with block")
        check_documents(
            ids,
            offsets,
            vocab_size=self._vocab_size,
            max_tokens=MAX_DOCUMENT_TOKENS,
            shard=self._name,
            first=self._documents,
        )
        lengths = np.diff(offsets)
        self._whole = False
        for start in range(0, ids.size, _BLOCK):
            self._bin.write(ids[start : start + _BLOCK].astype(self._dtype).tobytes())
        self._spool(lengths.astype("<i4").tobytes())
        self._documents += lengths.size
        self._tokens += ids.size
        self._whole = True

    def result(self) -> ShardFiles:
        """Returns what was written, once the `with` block has ended well.

        Raises:
            ValueError: before that.
        """
        if self._result is None:
            raise ValueError(f"{self._name} is not written: its block has not ended well")
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
                self._bin_context.__exit__(kind, error, trace)
            else:
                self._publish()

    def _publish(self) -> None:
        bin_ended = False
        try:
            if not self._whole:
                raise DataError(f"{self._name}: writing a batch of documents failed before")
            self._bin.write(b"" if self._tokens else bytes(self._dtype.itemsize))
            with self._storage.create(self._idx_url) as file:
                idx = ShardFile(file)
                self._write_index(idx)
                # The index stands complete under its attempt's name, so what can still fail is
                # two renames; whoever sees the .idx sees the .bin.
                bin_ended = True
                self._bin_context.__exit__(None, None, None)
        except BaseException as failure:
            if not bin_ended:
                self._bin_context.__exit__(type(failure), failure, failure.__traceback__)
            elif not self._storage.exists(self._idx_url):
                # With an .idx there, a twin attempt finished the same shard: the .bin is its own.
                self._storage.remove(self._bin_url)
            raise
        self._result = ShardFiles(
            self._documents,
            self._tokens,
            (self._bin.facts(f"{self._name}.bin"), idx.facts(f"{self._name}.idx")),
        )

    def _write_index(self, idx: ShardFile) -> None:
        count = self._documents
        idx.write(_HEADER.pack(_MAGIC, _VERSION, _CODES[self._dtype], count, count + 1))
        for lengths in self._spooled():
            idx.write(lengths.tobytes())
        start = 0
        for lengths in self._spooled():
            ends = start + np.cumsum(lengths, dtype=np.int64)
            idx.write(((ends - lengths) * self._dtype.itemsize).astype("<i8").tobytes())
            start = int(ends[-1])
        for first in range(0, count + 1, _BLOCK):
            idx.write(np.arange(first, min(first + _BLOCK, count + 1), dtype="<i8").tobytes())

    def _spool(self, data: bytes) -> None:
        try:
            self._lengths.write(data)
        except OSError as error:
            raise self._spool_error(error) from error

    def _spooled(self) -> Iterator[NDArray[np.int32]]:
        try:
            self._lengths.seek(0)
            while data := self._lengths.read(4 * _BLOCK):
                yield np.frombuffer(data, dtype="<i4")
        except OSError as error:
            raise self._spool_error(error) from error

    def _spool_error(self, error: OSError) -> DataError:
        return DataError(
            f"{tempfile.gettempdir()}: the temporary file with the document lengths of "
            f"{self._name} failed: {error.strerror or error}; 4 bytes a document are needed "
            "there, and the variable TMPDIR chooses another folder"
        )


class MegatronReader:
    """Reads one shard of one sequence a document back; `len` is its number of documents.

    Opening reads the whole index once (20 bytes a document) and refuses every violation of the
    layout; nothing is allocated from a count that the sizes of the files do not bear out. Close
    it, or use it as a context manager.

    Attributes:
        dtype: how ids are stored, `uint16` or `int32`.
        token_count: how many ids the shard holds.
    """

    def __init__(self, storage: Storage, folder: str, name: str) -> None:
        """Opens and validates a shard.

        Args:
            storage: where to read.
            folder: path or URL of the shard's folder.
            name: the shard's name, without a suffix.

        Raises:
            DataError: if a file is missing or breaks the layout; names file and place.
        """
        idx_url = storage.join(folder, f"{name}.idx")
        with ExitStack() as opened:
            self._idx = RangeFile(storage, idx_url)
            opened.callback(self._idx.close)
            self._bin = RangeFile(storage, storage.join(folder, f"{name}.bin"))
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
        """Closes both files."""
        self._idx.close()
        self._bin.close()

    def __len__(self) -> int:
        return self._count

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        """Returns int32 [stop - start]: the tokens of the documents from `start` to `stop`.

        Raises:
            DataError: if a length is negative or cannot be read.
            IndexError: if the range is not within the shard.
        """
        check_range("documents", start, stop, self._count)
        at = _HEADER.size + 4 * start
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
        """Returns uint32 [stop - start]: the ids from the shard's token `start` to `stop`.

        Raises:
            DataError: if an id is negative or cannot be read.
            IndexError: if the range is not within the shard.
        """
        check_range("tokens", start, stop, self.token_count)
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
        """Returns uint32 [tokens]: the ids of one document. Two short reads of the index.

        Args:
            index: the document's number, 0 to `len(self) - 1`.
        """
        length = int(self.lengths(index, index + 1)[0])
        at = _HEADER.size + 4 * self._count + 8 * index
        pointer = int.from_bytes(self._idx.read(at, 8), "little")
        start = pointer // self.dtype.itemsize
        return self.tokens(start, start + length)

    def batches(
        self, max_tokens: int = 1 << 20
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """Yields all documents in order, as `MegatronWriter.write_documents` takes them.

        Args:
            max_tokens: at most so many ids a batch; a longer document comes alone. A batch has at
                most 262,144 documents.

        Yields:
            ids, uint32 [tokens], and offsets, int64 [documents + 1], from 0.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; allowed: 1 and more")
        token = 0
        for first in range(0, self._count, _BLOCK):
            lengths = self.lengths(first, min(first + _BLOCK, self._count))
            bounds = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
            begin = 0
            while begin < lengths.size:
                fit = int(np.searchsorted(bounds, bounds[begin] + max_tokens, side="right")) - 1
                end = max(fit, begin + 1)
                offsets = bounds[begin : end + 1] - bounds[begin]
                ids = self.tokens(token, token + int(offsets[-1]))
                yield ids, offsets
                token += ids.size
                begin = end

    def locate(self, token: int) -> tuple[int, int]:
        """Returns the document that holds the shard's id number `token`, and the place in it.

        Reads the lengths up to there, 4 bytes a document.
        """
        check_range("tokens", token, token + 1, self.token_count)
        start = 0
        for first in range(0, self._count, _BLOCK):
            lengths = self.lengths(first, min(first + _BLOCK, self._count))
            ends = start + np.cumsum(lengths, dtype=np.int64)
            if token < ends[-1]:
                place = int(np.searchsorted(ends, token, side="right"))
                return first + place, token - int(ends[place] - lengths[place])
            start = int(ends[-1])
        raise DataError(f"{self._idx.url}: the lengths changed while they were read")

    def _read_header(self) -> tuple[np.dtype[Any], int]:
        idx = self._idx
        if idx.size < _HEADER.size:
            raise DataError(f"{idx.url}: has {idx.size} bytes; the header alone has {_HEADER.size}")
        magic, version, code, sequences, documents = _HEADER.unpack(idx.read(0, _HEADER.size))
        if magic != _MAGIC:
            raise DataError(f"{idx.url}: byte 0: the magic is {magic!r}; expected {_MAGIC!r}")
        if version != _VERSION:
            raise DataError(f"{idx.url}: byte 9: the version is {version}; expected {_VERSION}")
        if code not in _DTYPES:
            raise DataError(
                f"{idx.url}: byte 17: the dtype code is {code}; expected 8 (uint16) or 4 (int32)"
            )
        if documents != sequences + 1:
            raise DataError(
                f"{idx.url}: byte 26: the document index has {documents} entries; expected "
                f"{sequences + 1}, one sequence a document and the end"
            )
        size = _HEADER.size + 12 * sequences + 8 * documents
        if idx.size != size:
            raise DataError(
                f"{idx.url}: byte 18: {sequences} sequences make an index of {size} bytes; the "
                f"file has {idx.size}"
            )
        return _DTYPES[code], sequences

    def _check_index(self, pointers: RangeFile, documents: RangeFile) -> int:
        """Holds the three arrays and the size of the .bin against each other; counts the ids.

        The arrays are checked side by side: a file of holes that claims any number of documents
        fails at its first block.
        """
        pointers_at = _HEADER.size + 4 * self._count
        documents_at = pointers_at + 8 * self._count
        width = self.dtype.itemsize
        tokens = 0
        for first in range(0, self._count, _BLOCK):
            stop = min(first + _BLOCK, self._count)
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


def _check_array(
    file: RangeFile, array_at: int, what: str, first: int, expected: NDArray[np.int64]
) -> None:
    """Reads a block of an int64 array, from its entry `first` on, and compares."""
    at = array_at + 8 * first
    found = np.frombuffer(file.read(at, 8 * expected.size), dtype="<i8")
    differs = found != expected
    if differs.any():
        bad = int(np.argmax(differs))
        raise DataError(
            f"{file.url}: byte {at + 8 * bad}: the {what} {first + bad} is {int(found[bad])}; "
            f"expected {int(expected[bad])}"
        )

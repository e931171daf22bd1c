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
end by the index alone, never by an end-of-text id. No pair is written without tokens: Megatron
cannot map an empty file, and its `GPTDataset` cannot cut samples from documents without tokens.
Earlier versions of this package wrote such pairs, with one id 0 that no document has.

The writer here and the reader in `megatron_reader.py` hold blocks of fixed size. The writer spools
the lengths to a local temporary file, since a gigabyte of empty lines has a billion documents.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats import MAX_VOCAB_SIZE, ShardFiles
from bpe_beam.shards.formats.documents import check_documents
from bpe_beam.shards.formats.files import ShardFile
from bpe_beam.storage import Storage

MAX_DOCUMENT_TOKENS = 2**31 - 1
"""A length is an int32."""

MAGIC, VERSION = b"MMIDIDX\0\0", 1
HEADER = struct.Struct("<9sQBQQ")
DTYPES: dict[int, np.dtype[Any]] = {4: np.dtype("<i4"), 8: np.dtype("<u2")}
_CODES = {dtype: code for code, dtype in DTYPES.items()}
BLOCK = 1 << 18
"""Documents, or tokens, held at a time: some megabytes whichever array it is."""

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
    return DTYPES[8 if vocab_size <= 2**16 else 4]


class MegatronWriter:
    """Writes one shard as a stream; a context manager.

    When the `with` block ends well, `.bin` and then `.idx` become visible, each as a whole. When it
    ends with an exception, no `.idx` becomes visible, and only if the `.idx` alone could not be
    written is there a `.bin`: an attempt never removes what another one may have published. Without
    any token nothing is written. Equal documents give equal bytes.

        with MegatronWriter(storage, "tokens", "shard-00000-of-00001", 50_257) as writer:
            writer.write_documents(ids, offsets)
        writer.result()
    """

    def __init__(self, storage: Storage, folder: str, name: str, vocab_size: int) -> None:
        """Prepares a writer; nothing is opened before the first token.

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
        self._bin: ShardFile | None = None
        self._bin_context: AbstractContextManager[BinaryIO] | None = None
        self._result: ShardFiles | None = None

    def __enter__(self) -> MegatronWriter:
        # Closed by __exit__.
        self._lengths = tempfile.SpooledTemporaryFile(max_size=_SPOOL_IN_MEMORY)
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
        for start in range(0, ids.size, BLOCK):
            self._ids_file().write(ids[start : start + BLOCK].astype(self._dtype).tobytes())
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
                self._give_up(kind, error, trace)
            else:
                self._publish()

    def _ids_file(self) -> ShardFile:
        """Return the open `.bin`; it is opened at the first call."""
        if self._bin is None:
            self._bin_context = self._storage.create(self._bin_url)
            self._bin = ShardFile(self._bin_context.__enter__())
        return self._bin

    def _give_up(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the `.bin` as far as it was written; it has not become visible."""
        context, self._bin_context = self._bin_context, None
        if context is not None:
            context.__exit__(kind, error, trace)

    def _publish(self) -> None:
        files: tuple[FileInfo, ...] = ()
        try:
            if not self._whole:
                raise DataError(f"{self._name}: writing a batch of documents failed before")
            if self._bin is not None:
                files = self._publish_pair(self._bin)
        except BaseException as failure:
            self._give_up(type(failure), failure, failure.__traceback__)
            raise
        self._result = ShardFiles(self._documents, self._tokens, files)

    def _publish_pair(self, ids: ShardFile) -> tuple[FileInfo, ...]:
        with self._storage.create(self._idx_url) as file:
            idx = ShardFile(file)
            self._write_index(idx)
            file.flush()
            # The index is complete under its attempt's name: two renames are left that can fail.
            # Whoever sees the .idx sees the .bin. If the second rename fails, the .bin stays: it
            # may be the one that another attempt at the same shard has published.
            context, self._bin_context = self._bin_context, None
            assert context is not None
            context.__exit__(None, None, None)
        return ids.info(f"{self._name}.bin"), idx.info(f"{self._name}.idx")

    def _write_index(self, idx: ShardFile) -> None:
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

    def _spool(self, data: bytes) -> None:
        try:
            self._lengths.write(data)
        except OSError as error:
            raise self._spool_error(error) from error

    def _spooled(self) -> Iterator[NDArray[np.int32]]:
        try:
            self._lengths.seek(0)
            while data := self._lengths.read(4 * BLOCK):
                yield np.frombuffer(data, dtype="<i4")
        except OSError as error:
            raise self._spool_error(error) from error

    def _spool_error(self, error: OSError) -> DataError:
        return DataError(
            f"{tempfile.gettempdir()}: the temporary file with the document lengths of "
            f"{self._name} failed: {error.strerror or error}; 4 bytes a document are needed "
            "there, and the variable TMPDIR chooses another folder"
        )

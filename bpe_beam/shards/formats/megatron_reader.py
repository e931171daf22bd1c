"""Reads Megatron shards back; their layout is described in `megatron.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.documents import check_range
from bpe_beam.shards.formats.files import RangeFile
from bpe_beam.shards.formats.megatron import BLOCK, DTYPES, HEADER, MAGIC, VERSION
from bpe_beam.storage import Storage


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
        at = HEADER.size + 4 * self._count + 8 * index
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
        for first in range(0, self._count, BLOCK):
            lengths = self.lengths(first, min(first + BLOCK, self._count))
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
        for first in range(0, self._count, BLOCK):
            lengths = self.lengths(first, min(first + BLOCK, self._count))
            ends = start + np.cumsum(lengths, dtype=np.int64)
            if token < ends[-1]:
                place = int(np.searchsorted(ends, token, side="right"))
                return first + place, token - int(ends[place] - lengths[place])
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
        """Holds the three arrays and the size of the .bin against each other; counts the ids.

        The arrays are checked side by side: a file of holes that claims any number of documents
        fails at its first block.
        """
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

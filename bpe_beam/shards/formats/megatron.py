"""Megatron shards: a `.bin` of token ids and an `.idx` that says where each document begins.

`megatron/core/datasets/indexed_dataset.py` (Megatron-LM) defines the layout, little-endian:

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
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.id_stream import BLOCK, IdStream, IdStreamWriter, stream_format
from bpe_beam.shards.stored_shard import RangeFile, ShardFile
from bpe_beam.storage.hashing import HashingFile

_MAGIC, _VERSION = b"MMIDIDX\0\0", 1
_HEADER = struct.Struct("<9sQBQQ")
_ENTRY = "entry of the document index"
_DTYPES: dict[int, np.dtype[Any]] = {8: np.dtype("<u2"), 4: np.dtype("<i4")}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}

_IDS, _INDEX = ".bin", ".idx"

WIDTH_AT = f"{_INDEX}: byte 17"  # where the format says how wide ids are, for errors


class MegatronWriter(IdStreamWriter):
    """A `ShardWriter`; each document is one sequence."""

    suffixes = (_IDS, _INDEX)
    dtypes = tuple(_DTYPES.values())

    def finish(self, *others: HashingFile) -> None:
        (idx,) = others
        count = self.documents
        idx.write(_HEADER.pack(_MAGIC, _VERSION, _CODES[self.dtype], count, count + 1))
        for lengths in self.lengths():
            idx.write(lengths.tobytes())
        for starts, _ in self.bounds():
            idx.write((starts * self.dtype.itemsize).astype("<i8").tobytes())
        for first in range(0, count + 1, BLOCK):
            idx.write(np.arange(first, min(first + BLOCK, count + 1), dtype="<i8").tobytes())


class MegatronStream(IdStream):
    """The documents of a Megatron shard.

    Memory never depends on a number in a file before it was compared with the files' sizes.
    """

    suffixes = MegatronWriter.suffixes
    missing = "last"

    def read_heads(self, *others: RangeFile | ShardFile) -> None:
        (self._idx,) = others
        self._dtype, self.count = _read_header(self._idx)
        self.unit = self._dtype.itemsize
        self.bounds = self._idx.array(np.dtype("<i8"), self.count, _HEADER.size + 4 * self.count)

    def dtypes(self) -> Sequence[np.dtype[Any]]:
        return (self._dtype,)

    def describe_bound(self, document: int) -> str:
        return f"{self._idx.url}: byte {_HEADER.size + 4 * self.count + 8 * (document + 1)}"

    def count_tokens(self) -> int:
        """Compare the arrays of the index (20 bytes a document) side by side, and the `.bin`."""
        assert isinstance(self._idx, RangeFile)
        pointers_at = _HEADER.size + 4 * self.count
        documents_at = pointers_at + 8 * self.count
        tokens = 0
        # Handles of their own, so that each array is read straight through. A block of all three,
        # so that an index of holes ends at its first one.
        with self._idx.opened_again() as pointers, self._idx.opened_again() as documents:
            for first in range(0, self.count, BLOCK):
                stop = min(first + BLOCK, self.count)
                lengths = self._stored_lengths(first, stop)
                ends = tokens + np.cumsum(lengths, dtype=np.int64)
                starts = (ends - lengths) * self.unit
                _check_array(pointers, pointers_at, "pointer of document", first, starts)
                numbers = np.arange(first, stop, dtype=np.int64)
                _check_array(documents, documents_at, _ENTRY, first, numbers)
                tokens = int(ends[-1])
                # Before the next block, so that no sum outgrows 64 bits.
                if tokens * self.unit > self.ids.size:
                    raise DataError(
                        f"{self.ids.url}: has {self.ids.size} bytes; the first {stop} documents of "
                        f"the index alone need {tokens * self.unit}"
                    )
            last = np.array([self.count])
            _check_array(documents, documents_at, _ENTRY, self.count, last)
        return tokens

    def _stored_lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        at = _HEADER.size + 4 * start
        lengths: NDArray[np.int32] = np.frombuffer(self._idx.read(at, 4 * (stop - start)), "<i4")
        if lengths.size and lengths.min() < 0:
            bad = int(np.argmax(lengths < 0))
            raise DataError(
                f"{self._idx.url}: byte {at + 4 * bad}: document {start + bad} has the length "
                f"{int(lengths[bad])}; expected 0 or more"
            )
        return lengths


def _check_array(
    file: RangeFile, array_at: int, what: str, first: int, expected: NDArray[np.int64]
) -> None:
    """Read a block of an int64 array, from its entry `first` on, and compare it."""
    at = array_at + 8 * first
    stored = np.frombuffer(file.read(at, 8 * expected.size), dtype="<i8")
    differs = stored != expected
    if differs.any():
        bad = int(np.argmax(differs))
        raise DataError(
            f"{file.url}: byte {at + 8 * bad}: the {what} {first + bad} is {int(stored[bad])}; "
            f"expected {int(expected[bad])}"
        )


def _read_header(idx: RangeFile | ShardFile) -> tuple[np.dtype[Any], int]:
    """Return the type of ids and the number of documents; check the size of the `.idx`."""
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


FORMAT = stream_format(
    "megatron", MegatronWriter, MegatronStream, width_at=WIDTH_AT, megatron_pairs=True
)

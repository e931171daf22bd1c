"""Flat shards: a `.bin` of token ids without a header, and where documents begin in it.

Little-endian:

    .bin                    the ids of all documents one after the other, uint16 or uint32
    .document_offsets.npy   a numpy file, int64[documents + 1]: the first token of each document,
                            and the number of tokens at the end

`numpy.memmap` and `numpy.load` read them, and so does any reader of plain ids, which needs to know
their type: uint16 if every id of the vocabulary is below 65,536, else uint32. Documents end by the
offsets alone, never by an end-of-text id.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.id_stream import (
    EndsReader,
    IdStreamCheck,
    IdStreamWriter,
    StreamAccess,
    check_documents,
    fitting_width,
)
from bpe_beam.shards.formats.interface import ShardFormat
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.storage.hashing import HashingFile

if TYPE_CHECKING:
    from bpe_beam.shards.stored_shard import IdArray, ShardFile, StoredShard

_IDS, _OFFSETS = ".bin", ".document_offsets.npy"
_NPY_HEADER_BYTES = 128


class FlatWriter(IdStreamWriter):
    """A `ShardWriter` of flat shards."""

    suffixes = (_IDS, _OFFSETS)
    dtypes = (np.dtype("<u2"), np.dtype("<u4"))

    def finish(self, *others: HashingFile) -> None:
        (offsets,) = others
        offsets.write(_npy_header(self.documents + 1))
        offsets.write(bytes(8))
        for _, ends in self.bounds():
            offsets.write(ends.astype("<i8").tobytes())


class FlatReader(EndsReader):
    """A `ShardReader` of flat shards.

    Opening reads all offsets once (8 bytes a document) and refuses every violation of the layout.
    """

    suffixes = FlatWriter.suffixes

    def read_heads(self, *others: RangeFile) -> None:
        (self._offsets,) = others
        self.count = read_npy_header(self._offsets)
        first = int.from_bytes(self._offsets.read(_NPY_HEADER_BYTES, 8), "little", signed=True)
        if first:
            raise DataError(
                f"{self._offsets.url}: byte {_NPY_HEADER_BYTES}: document 0 begins at token "
                f"{first}; expected 0"
            )
        self.ends = self._offsets.array(np.dtype("<i8"), self.count, _NPY_HEADER_BYTES + 8)
        self.token_count = self.count_tokens()
        self.dtype = self.stored_dtype()

    def describe_end(self, document: int) -> str:
        return f"{self._offsets.url}: byte {_NPY_HEADER_BYTES + 8 * (document + 1)}"

    def stored_dtype(self) -> np.dtype[Any]:
        """Return the type of the ids, which follows from the size of their file."""
        source = f"the {self.count} documents of the offsets have"
        return fitting_width(self.ids, self.token_count, FlatWriter.dtypes, source)


def read_npy_header(file: RangeFile | ShardFile) -> int:
    """Check the header of the offsets, and return the number of documents."""
    entries, rest = divmod(file.size - _NPY_HEADER_BYTES, 8)
    if entries < 1 or rest:
        raise DataError(
            f"{file.url}: has {file.size} bytes; expected {_NPY_HEADER_BYTES} of a header and "
            "8 for each document and for the end"
        )
    header, expected = file.read(0, _NPY_HEADER_BYTES), _npy_header(entries)
    if header != expected:
        bad = next(at for at in range(_NPY_HEADER_BYTES) if header[at] != expected[at])
        raise DataError(
            f"{file.url}: byte {bad}: the header is not of a numpy file of int64[{entries}]"
        )
    return entries - 1


def offsets_of(shard: StoredShard) -> IdArray:
    """Return the offsets of a shard, after a check of their header."""
    file = shard.file(_OFFSETS)
    check_documents(file, read_npy_header(file), shard)
    return file.array(np.dtype("<i8"), shard.entry.documents + 1, _NPY_HEADER_BYTES)


def _access(shard: StoredShard) -> StreamAccess:
    """Open a shard for reading at any position: the header of the offsets is read."""
    ids = shard.file(_IDS)
    dtype = fitting_width(ids, shard.entry.tokens, FlatWriter.dtypes, "the manifest says")
    return StreamAccess(shard, ids, dtype, offsets_of(shard))


def _npy_header(entries: int) -> bytes:
    """Return the header of a numpy file of int64[entries]: 128 bytes, as `numpy.save` writes it.

    Written here, so that no version of numpy decides on bytes of ours.
    """
    text = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({entries},), }}"
    start = b"\x93NUMPY\x01\x00" + (_NPY_HEADER_BYTES - 10).to_bytes(2, "little")
    return start + text.encode().ljust(_NPY_HEADER_BYTES - len(start) - 1) + b"\n"


FORMAT = ShardFormat(
    name="flat",
    suffixes=FlatWriter.suffixes,
    writer=FlatWriter,
    reader=FlatReader,
    check=partial(IdStreamCheck, writer=FlatWriter),
    access=_access,
)

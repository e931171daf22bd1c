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

from collections.abc import Sequence
from typing import Any

import numpy as np

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.id_stream import IdStream, IdStreamWriter, stream_format
from bpe_beam.shards.stored_shard import RangeFile, ShardFile
from bpe_beam.storage.hashing import HashingFile

_NPY_HEADER_BYTES = 128


class FlatWriter(IdStreamWriter):
    """A `ShardWriter` of flat shards."""

    suffixes = (".bin", ".document_offsets.npy")
    dtypes = (np.dtype("<u2"), np.dtype("<u4"))

    def finish(self, *others: HashingFile) -> None:
        (offsets,) = others
        offsets.write(_npy_header(self.documents + 1))
        offsets.write(bytes(8))
        for _, ends in self.bounds():
            offsets.write(ends.astype("<i8").tobytes())


class FlatStream(IdStream):
    """The documents of a flat shard."""

    suffixes = FlatWriter.suffixes

    def read_heads(self, *others: RangeFile | ShardFile) -> None:
        (offsets,) = others
        self._offsets_url = offsets.url
        entries, rest = divmod(offsets.size - _NPY_HEADER_BYTES, 8)
        if entries < 1 or rest:
            raise DataError(
                f"{offsets.url}: has {offsets.size} bytes; expected {_NPY_HEADER_BYTES} of a "
                "header and 8 for each document and for the end"
            )
        header, expected = offsets.read(0, _NPY_HEADER_BYTES), _npy_header(entries)
        if header != expected:
            bad = next(at for at in range(_NPY_HEADER_BYTES) if header[at] != expected[at])
            raise DataError(
                f"{offsets.url}: byte {bad}: the header is not of a numpy file of int64[{entries}]"
            )
        first = int.from_bytes(offsets.read(_NPY_HEADER_BYTES, 8), "little", signed=True)
        if first:
            place = f"{offsets.url}: byte {_NPY_HEADER_BYTES}"
            raise DataError(f"{place}: document 0 begins at token {first}; expected 0")
        self.count = entries - 1
        self.bounds = offsets.array(np.dtype("<i8"), entries, _NPY_HEADER_BYTES)

    def dtypes(self) -> Sequence[np.dtype[Any]]:
        return FlatWriter.dtypes

    def describe_bound(self, document: int) -> str:
        return f"{self._offsets_url}: byte {_NPY_HEADER_BYTES + 8 * (document + 1)}"


def _npy_header(entries: int) -> bytes:
    """Return the header of a numpy file of int64[entries]: 128 bytes, as `numpy.save` writes it.

    Written here, so that no version of numpy decides on bytes of ours.
    """
    text = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({entries},), }}"
    start = b"\x93NUMPY\x01\x00" + (_NPY_HEADER_BYTES - 10).to_bytes(2, "little")
    return start + text.encode().ljust(_NPY_HEADER_BYTES - len(start) - 1) + b"\n"


FORMAT = stream_format("flat", FlatWriter, FlatStream)

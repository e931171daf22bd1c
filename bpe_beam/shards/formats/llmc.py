"""llm.c shards: a `.bin` of a header and token ids, and where documents begin in it.

`dev/data/data_common.py` (llm.c) defines the layout of the `.bin`, little-endian:

    int32[256]   0   magic: 20240520 is uint16, 20240801 is uint32
                 1   version: 1 of uint16, 7 of uint32
                 2   N, the number of ids
                 3   0, up to the end
    ids[N]       the ids of all documents one after the other

Its readers know documents by the end-of-text token that each **begins** with; the setting `prepend`
gives it. The `.document_offsets.npy` is as in flat shards; llm.c does not read it.

The header has the number of ids, and a store cannot be written backwards, so the writer keeps the
ids in a local temporary file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.document_batches import DocumentBatch
from bpe_beam.shards.formats.batch_writer import full_shard
from bpe_beam.shards.formats.flat import FlatStream, FlatWriter
from bpe_beam.shards.formats.id_stream import stream_format
from bpe_beam.storage.hashing import HashingFile

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_FILE_TOKENS = 2**31 - 1  # the maximum ids of a file: the header counts them with an int32

_KINDS: dict[np.dtype[Any], tuple[int, int]] = {
    np.dtype("<u2"): (20240520, 1),
    np.dtype("<u4"): (20240801, 7),
}
"""The magic and the version of a type of ids."""

_HEADER_ENTRIES = 256
_HEADER_BYTES = 4 * _HEADER_ENTRIES
_COPY_BYTES = 1 << 20


class LlmcWriter(FlatWriter):
    """A `ShardWriter` of llm.c shards."""

    def __enter__(self) -> Self:
        self._spooled_ids = self.spool("the ids", f"{self.dtype.itemsize} bytes a token")
        return super().__enter__()

    def check(self, batch: DocumentBatch) -> None:
        super().check(batch)
        if self.tokens + batch.ids.size > MAX_FILE_TOKENS:
            limit = (
                f"{MAX_FILE_TOKENS} tokens, the maximum that the header of an llm.c file can count"
            )
            raise full_shard(self.name, limit)

    def write_ids(self, stored: NDArray[Any]) -> None:
        """See `IdStreamWriter.write_ids`; the ids wait for the header."""
        self._spooled_ids.write(stored.tobytes())

    def finish(self, *others: HashingFile) -> None:
        file = self.file()
        file.write(_header(self.dtype, self.tokens))
        for block in self._spooled_ids.blocks(_COPY_BYTES):
            file.write(block)
        super().finish(*others)


class LlmcStream(FlatStream):
    """The documents of an llm.c shard."""

    ids_at = _HEADER_BYTES

    def dtypes(self) -> Sequence[np.dtype[Any]]:
        """Return the type that the header names, after a check of the header."""
        ids = self.ids
        if ids.size < _HEADER_BYTES:
            raise DataError(
                f"{ids.url}: has {ids.size} bytes; the header alone has {_HEADER_BYTES}"
            )
        stored = np.frombuffer(ids.read(0, _HEADER_BYTES), "<i4")
        dtypes = {magic: dtype for dtype, (magic, _) in _KINDS.items()}
        dtype = dtypes.get(int(stored[0]))
        if dtype is None:
            raise DataError(
                f"{ids.url}: byte 0: the magic is {int(stored[0])}; expected "
                f"{' or '.join(map(str, dtypes))}"
            )
        expected = np.frombuffer(_header(dtype, self.token_count), "<i4")
        if (stored != expected).any():
            bad = int(np.argmax(stored != expected))
            raise DataError(
                f"{ids.url}: byte {4 * bad}: entry {bad} of the header is {int(stored[bad])}; "
                f"expected {int(expected[bad])}"
            )
        return (dtype,)


def _header(dtype: np.dtype[Any], tokens: int) -> bytes:
    header = np.zeros(_HEADER_ENTRIES, "<i4")
    header[:3] = (*_KINDS[dtype], tokens)
    return header.tobytes()


FORMAT = stream_format(
    "llmc",
    LlmcWriter,
    LlmcStream,
    width_at=".bin: byte 0",
    needs_prepend=True,
    max_shard_tokens=MAX_FILE_TOKENS,
)

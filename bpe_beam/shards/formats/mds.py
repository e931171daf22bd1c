"""MDS shards: `.mds` files for MosaicML's `StreamingDataset`, and one `index.json`.

The layout of a file is in `offsets_file.py`; between the table and the documents is the JSON of
the columns. There is one, `tokens`, of kind `ndarray:int32`, which llm-foundry reads. A document:

    uint32   the bytes after this number
    uint8    4 for one dimension, plus 0, 1 or 2 if the next number has 1, 2 or 4 bytes
    uint     N, the number of ids: 1, 2 or 4 bytes
    int32[N] the ids

The library refuses to write documents without ids; it reads them with numpy 2.4.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards.formats.offsets_file import MAX_TOKENS, OffsetsFile, OffsetsWriter
from bpe_beam.shards.formats.record_file import record_format

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe_beam.shards.shard_rows import Shard

_VERSION = 2
_COLUMNS: dict[str, object] = {
    "column_encodings": ["ndarray:int32"],
    "column_names": ["tokens"],
    "column_sizes": [None],
    "compression": None,
    "format": "mds",
    "hashes": [],
    "size_limit": None,
    "version": _VERSION,
}
_DESCRIPTION = json.dumps(_COLUMNS, sort_keys=True).encode()


class _Heads:
    """The bytes of documents but for their ids.

    `data` is uint8[n], the heads one after the other; `widths` int64[documents], their bytes;
    `used` bool[documents, 9], which bytes of the longest possible head each has.
    """

    def __init__(self, lengths: NDArray[np.int64]) -> None:
        widths = _widths(lengths)
        self.widths = 5 + widths
        heads = np.empty((lengths.size, 9), np.uint8)
        heads[:, :4] = (1 + widths + 4 * lengths).astype("<u4")[:, np.newaxis].view(np.uint8)
        heads[:, 4] = 4 + widths // 2
        heads[:, 5:] = lengths.astype("<u4")[:, np.newaxis].view(np.uint8)
        self.used = np.arange(9) < self.widths[:, np.newaxis]
        self.data = heads[self.used]


def _head(length: int) -> bytes:
    """Return the bytes of one document but for its ids."""
    width = 1 if length < 1 << 8 else 2 if length < 1 << 16 else 4
    size = (1 + width + 4 * length).to_bytes(4, "little")
    return size + bytes([4 + width // 2]) + length.to_bytes(width, "little")


class MdsWriter(OffsetsWriter):
    """A `ShardWriter`."""

    suffixes = (".mds",)
    between = _DESCRIPTION

    def sizes_of(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        return 5 + _widths(lengths) + 4 * lengths

    def encode(self, ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> Buffer:
        head = _Heads(lengths)
        parts: list[memoryview] = [memoryview(b"")] * (2 * lengths.size)
        parts[::2] = _parts(head.data.data, head.widths)
        parts[1::2] = _parts(ids.view(np.uint8).data, 4 * lengths)
        return b"".join(parts)


def _widths(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bytes of the number of ids of each document."""
    return np.where(lengths < 1 << 8, 1, np.where(lengths < 1 << 16, 2, 4))


def _parts(data: memoryview, sizes: NDArray[np.int64]) -> list[memoryview]:
    ends = [0, *np.cumsum(sizes).tolist()]
    return [data[start:end] for start, end in pairwise(ends)]


class _Samples(OffsetsFile):
    """A `RecordFile`."""

    between = _DESCRIPTION

    def lengths_of(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        # The bytes beyond whole ids tell the width of the number of ids: 1, 2 or 4.
        widths = np.array([4, 1, 2, 0])[(sizes - 5) % 4]
        lengths = (sizes - 5 - widths) // 4
        return np.where((widths == _widths(lengths)) & (sizes >= 6), lengths, -1)

    def decode(
        self, data: NDArray[np.uint8], lengths: NDArray[np.int64]
    ) -> NDArray[np.uint8] | None:
        if lengths.size == 1:  # numpy's arrays would take most of the time of a short document
            first = _head(int(lengths[0]))
            # A copy, as the ids in the file are not aligned.
            return data[len(first) :].copy() if data[: len(first)].tobytes() == first else None
        head = _Heads(lengths)
        sizes = head.widths + 4 * lengths
        begins = np.cumsum(sizes) - sizes
        is_id = np.ones(int(sizes.sum()), np.bool_)
        is_id[(begins[:, np.newaxis] + np.arange(9))[head.used]] = False
        return data[is_id] if np.array_equal(data[~is_id], head.data) else None


def _index(shards: Sequence[Shard]) -> bytes:
    """Return the content of `index.json`."""
    rows = [
        {
            **_COLUMNS,
            "raw_data": {
                "basename": shard.files[0].name,
                "bytes": shard.files[0].bytes,
                "hashes": {},
            },
            "samples": shard.documents,
            "zip_data": None,
        }
        for shard in shards
    ]
    return json.dumps({"shards": rows, "version": _VERSION}, sort_keys=True).encode()


FORMAT = record_format(
    "mds",
    MdsWriter,
    _Samples,
    MAX_TOKENS,
    max_shard_tokens=MAX_TOKENS,
    document_weight=4,  # an entry of the table and a head: up to 13 bytes
    index=_index,
)

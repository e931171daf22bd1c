"""litdata shards: chunks of token ids for Lightning's `StreamingDataset`, and one `index.json`.

The layout of a chunk is in `offsets_file.py`; a document is its ids, int32, and nothing else.
litdata's `TokensLoader` runs through the ids of a chunk by blocks, across documents, and drops what
fills no block at the end of a chunk. `index.json` lists the chunks in their order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards.formats import offsets_file
from bpe_beam.shards.formats.record_file import record_format

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe_beam.shards.shard_rows import Shard

_INT32 = "no_header_numpy:2"  # litdata's name of arrays of int32


class LitdataWriter(offsets_file.OffsetsWriter):
    """A `ShardWriter`."""

    suffixes = (".bin",)

    def sizes_of(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        return 4 * lengths

    def encode(self, ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> Buffer:
        return ids.data


class _Chunk(offsets_file.OffsetsFile):
    """A `RecordFile`."""

    def lengths_of(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(sizes % 4, -1, sizes // 4)

    def decode(self, data: NDArray[np.uint8], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
        return data


def _index(shards: Sequence[Shard]) -> bytes:
    """Return the content of `index.json`."""
    chunks = [
        {
            "chunk_bytes": shard.files[0].bytes,
            "chunk_size": shard.documents,
            "dim": shard.tokens,
            "filename": shard.files[0].name,
        }
        for shard in shards
    ]
    config = {
        "chunk_bytes": offsets_file.MAX_BYTES,
        "chunk_size": None,
        "compression": None,
        "data_format": [_INT32],
        "data_spec": None,
        "encryption": None,
        "item_loader": "TokensLoader",
    }
    index = {"chunks": chunks, "config": config, "updated_at": "0"}
    return json.dumps(index, sort_keys=True).encode()


FORMAT = record_format(
    "litdata",
    LitdataWriter,
    _Chunk,
    offsets_file.MAX_TOKENS,
    max_shard_tokens=offsets_file.MAX_TOKENS,
    document_weight=1,  # an entry of the table
    index=_index,
)

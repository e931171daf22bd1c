"""Adjacent pairs."""

from __future__ import annotations
from collections.abc import Iterator
import numpy as np, pyarrow as pa
from bpe_beam import _native
from bpe_beam.counts.word_counts import BLOCK_BYTES

PAIR_SCHEMA = pa.schema([("left", pa.uint32()), ("right", pa.uint32()), ("count", pa.int64())])


def _batch(cols):
    return pa.RecordBatch.from_arrays([pa.array(c) for c in cols], schema=PAIR_SCHEMA)


class PairCounts:
    def __init__(self):
        self._t = _native.PairTable()

    def __len__(self):
        return len(self._t)

    @property
    def memory_bytes(self):
        return self._t.memory_bytes

    def add_words(self, columns, widths=None, max_length=None):
        self._t.add_words(*columns, widths, max_length)

    def add_block(self, b):
        self._t.add(*(b.column(n).to_numpy() for n in PAIR_SCHEMA.names))

    def clear(self):
        self._t.clear()

    def blocks(self, shards):
        for s, cols in enumerate(self._t.split(shards)):
            n = len(cols[0])
            for i in range(0, n, 60000):
                yield s, _batch([c[i : i + 60000] for c in cols])

    def frequent(self, floor, limit):
        *c, f = self._t.frequent(floor, limit)
        return _batch(c), f

    def best(self, limit, ranks):
        return _batch(self._t.best(limit, ranks))

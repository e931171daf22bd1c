"""A table of adjacent symbol pairs and 64-bit counts: packed words in, Arrow out.

The native table with Arrow on both sides; symbols are ids below 2^32. One table takes 26 to 51
bytes a pair, half as much again while it grows, and 32 bytes a pair more while `blocks` runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.counts.packed_words import Columns
from bpe_beam.counts.word_table import (
    CountTable,
    code_points,
    data_errors,
    encode_block,
    string_buffers,
)
from bpe_beam.errors import DataError
from bpe_beam.tokenizer.components.byte_level import to_chars

PAIR_SCHEMA = pa.schema([("left", pa.uint32()), ("right", pa.uint32()), ("count", pa.int64())])

_CODE_OF_BYTE = np.array([ord(char) for char in to_chars(bytes(range(256)))], np.uint32)


class PairCounts(CountTable):
    """Adjacent pairs of symbols and how often they occur.

    Can be pickled, 16 bytes a pair. After a DataError the table has a part of the added pairs.
    """

    def __init__(self) -> None:
        super().__init__(_native.PairTable())

    def __reduce__(self) -> tuple[Callable[[bytes], PairCounts], tuple[bytes]]:
        return PairCounts.from_bytes, (self.to_bytes(),)

    def add_words(
        self,
        words: Columns,
        widths: NDArray[np.uint32] | None = None,
        max_length: int | None = None,
    ) -> None:
        """Count the adjacent pairs of packed words; each of overlapping pairs counts."""
        self._add(self._table.add_words, *words, widths, max_length)

    def add_texts(self, words: pa.Array, counts: pa.Array, symbols: str) -> None:
        """Count the adjacent pairs of words that are text."""
        data, offsets = string_buffers(words)
        first, last = int(offsets[0]), int(offsets[-1])
        utf8 = np.frombuffer(data, np.uint8)[first:last]
        offsets = offsets - first
        if symbols == "bytes":
            codes = _CODE_OF_BYTE[utf8]
        else:
            codes, offsets = code_points(utf8, offsets)
        packed = _native.pack_symbols(codes, offsets)
        self._add(self._table.add_words, *packed, counts.to_numpy())

    def add_block(self, block: pa.RecordBatch) -> None:
        """Add pairs with their counts (`PAIR_SCHEMA`)."""
        self._add(self._table.add, *_columns(block))

    def add(self, other: PairCounts) -> None:
        """Add another table's pairs."""
        self._add(self._table.add_table, other._table)

    def _batch(self, columns: Sequence[Any]) -> pa.RecordBatch:
        return _pairs(columns)

    def frequent(self, floor: int, limit: int) -> tuple[pa.RecordBatch, int]:
        """Return the pairs with the highest counts."""
        *columns, minimum = self._table.frequent(floor, limit)
        return _pairs(columns), int(minimum)

    def best(self, limit: int, ranks: NDArray[np.uint32] | None = None) -> pa.RecordBatch:
        """Return the first pairs in the order in which they would be merged."""
        return _pairs(self._table.best(limit, ranks))

    def to_batch(self) -> pa.RecordBatch:
        """Return all pairs (`PAIR_SCHEMA`), sorted by left and right, in one batch."""
        return _pairs(self._table.split(1)[0])

    def to_bytes(self) -> bytes:
        """Return all pairs, sorted; equal tables give equal bytes, 16 for a pair."""
        return encode_block(self.to_batch())

    @staticmethod
    def from_bytes(data: bytes) -> PairCounts:
        """Return the table that `to_bytes` encoded."""
        counts = PairCounts()
        counts.add_block(decode_pairs(data))
        return counts

    @staticmethod
    def _add(add: Callable[..., None], *columns: Any) -> None:
        with data_errors("pairs cannot be counted"):
            add(*columns)


def decode_pairs(data: bytes | pa.Buffer) -> pa.RecordBatch:
    """Return the block of pairs that `encode_block` encoded, or raise DataError."""
    with data_errors("a block of pair counts cannot be read"):
        block = pa.ipc.read_record_batch(pa.py_buffer(data), PAIR_SCHEMA)
        block.validate(full=True)
    return block


def _pairs(columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(each) for each in columns], schema=PAIR_SCHEMA)


def _columns(block: pa.RecordBatch) -> list[NDArray[Any]]:
    """Return the columns of a block of pairs, after a check of their types."""
    if not block.schema.equals(PAIR_SCHEMA):
        raise DataError(
            f"a block of pair counts has {_described(block.schema)}, not {_described(PAIR_SCHEMA)}"
        )
    if nulls := sum(column.null_count for column in block.columns):
        raise DataError(f"a block of pair counts has {nulls} nulls")
    return [column.to_numpy() for column in block.columns]


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema) or "no columns"

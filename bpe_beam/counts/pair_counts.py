"""A table of adjacent symbol pairs and 64-bit counts: packed words in, Arrow out.

The native table with Arrow on both sides; symbols are ids below 2^32. One table takes 16 bytes a
slot, between 5/16 and 5/8 full: 26 to 51 bytes a pair, and half as much again while it grows; 32
bytes a pair more while `blocks` runs. `memory_bytes` tells how much it holds, so that whoever fills
a table can hand its pairs on before it grows too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.counts.packed_words import Columns
from bpe_beam.counts.word_table import BLOCK_BYTES, string_buffers
from bpe_beam.errors import DataError
from bpe_beam.tokenizer.byte_level import to_chars

PAIR_SHARDS = 32
"""Shards of pairs: fixed, so that equal counts give equal blocks."""

PAIR_SCHEMA = pa.schema([("left", pa.uint32()), ("right", pa.uint32()), ("count", pa.int64())])

_ROW_BYTES = 16
_BLOCK_OVERHEAD = 1024
_CODE_OF_BYTE = np.array([ord(char) for char in to_chars(bytes(range(256)))], np.uint32)


class PairCounts:
    """Adjacent pairs of symbols and how often they occur.

    Can be pickled, 16 bytes a pair. Not for several threads at once; they would
    wait for each other. After a DataError the table holds a part of what it was given.
    """

    def __init__(self) -> None:
        """Makes an empty table."""
        self._table = _native.PairTable()

    def __len__(self) -> int:
        """Unique pairs."""
        return len(self._table)

    def __reduce__(self) -> tuple[Callable[[bytes], PairCounts], tuple[bytes]]:
        """How pickle makes it again."""
        return PairCounts.from_bytes, (self.to_bytes(),)

    @property
    def memory_bytes(self) -> int:
        """Bytes that the table holds."""
        return int(self._table.memory_bytes)

    def add_words(
        self,
        words: Columns,
        widths: NDArray[np.uint32] | None = None,
        max_length: int | None = None,
    ) -> None:
        """Counts the adjacent pairs of packed words, overlapping ones each.

        Args:
            words: Packed words and how often each occurs, as `packed_words.columns_of` gives them.
            widths: How many characters each symbol covers, by id; goes with `max_length`.
            max_length: Pairs that cover so many characters or more are not counted, unless two.

        Raises:
            DataError: No packed word, a count below 1, a symbol without a width, or a sum beyond
                64 bits.
        """
        self._add(self._table.add_words, *words, widths, max_length)

    def add_texts(self, words: pa.Array, counts: pa.Array, symbols: str) -> None:
        """Counts the adjacent pairs of words that are text.

        Args:
            words: string or large_string, without nulls; valid UTF-8.
            counts: int64, how often each occurs.
            symbols: "characters", whose ids are their code points, or "bytes", whose ids are the
                code points of their characters in the byte-level alphabet.

        Raises:
            DataError: A count below 1, or a sum beyond 64 bits.
        """
        data, offsets = string_buffers(words)
        first, last = int(offsets[0]), int(offsets[-1])
        utf8 = np.frombuffer(data, np.uint8)[first:last]
        offsets = offsets - first
        if symbols == "bytes":
            codes = _CODE_OF_BYTE[utf8]
        else:
            codes = np.frombuffer(utf8.tobytes().decode().encode("utf-32-le"), np.uint32)
            # How many characters begin before each byte.
            begun = np.cumsum(np.concatenate(([0], (utf8 & 0xC0) != 0x80)), dtype=np.int64)
            offsets = begun[offsets]
        packed = _native.pack_symbols(codes, offsets)
        self._add(self._table.add_words, *packed, counts.to_numpy())

    def add_block(self, block: pa.RecordBatch) -> None:
        """Adds pairs that have been counted already (`PAIR_SCHEMA`).

        Raises:
            DataError: Other columns, a null, a count below 1, or a sum beyond 64 bits.
        """
        self._add(self._table.add, *_columns(block))

    def add(self, other: PairCounts) -> None:
        """Adds another table's pairs.

        Raises:
            DataError: A sum beyond 64 bits.
        """
        self._add(self._table.add_table, other._table)

    def clear(self) -> None:
        """Forgets every pair and gives the memory back."""
        self._table.clear()

    def blocks(
        self, shards: int = PAIR_SHARDS, max_bytes: int = BLOCK_BYTES
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The pairs by shard, sorted by left and right, in blocks of at most `max_bytes`.

        A shard without pairs gives no block. A pair's shard follows from its ids alone, and equal
        tables give equal blocks, however they were filled.
        """
        rows = max(1, (max_bytes - _BLOCK_OVERHEAD) // _ROW_BYTES)
        for shard, columns in enumerate(self._table.split(shards)):
            whole = _pairs(columns)
            for start in range(0, len(whole), rows):
                yield shard, whole.slice(start, rows)

    def frequent(self, floor: int, limit: int) -> tuple[pa.RecordBatch, int]:
        """The pairs that count most.

        Args:
            floor: Pairs that count less are left out.
            limit: How many there may be. Were they more, the floor is raised as far as it must be;
                so pairs of equal counts are all there, or none of them.

        Returns:
            The pairs (`PAIR_SCHEMA`), sorted by left and right, and the floor that held.
        """
        *columns, held = self._table.frequent(floor, limit)
        return _pairs(columns), int(held)

    def best(self, limit: int, ranks: NDArray[np.uint32] | None = None) -> pa.RecordBatch:
        """The first pairs in the order in which they would be merged.

        Args:
            limit: How many.
            ranks: By id, what decides between equal counts: the lower rank of left, then of
                right. Without it the ids themselves.

        Returns:
            The pairs (`PAIR_SCHEMA`), by falling count, then ascending ranks.
        """
        return _pairs(self._table.best(limit, ranks))

    def to_batch(self) -> pa.RecordBatch:
        """All pairs (`PAIR_SCHEMA`), sorted by left and right, in one batch of any size."""
        return _pairs(self._table.split(1)[0])

    def to_bytes(self) -> bytes:
        """All pairs, sorted; equal tables give equal bytes, 16 for a pair."""
        return encode_pairs(self.to_batch())

    @staticmethod
    def from_bytes(data: bytes) -> PairCounts:
        """The table that `to_bytes` wrote.

        Raises:
            DataError: The bytes are none.
        """
        counts = PairCounts()
        counts.add_block(decode_pairs(data))
        return counts

    @staticmethod
    def _add(add: Callable[..., None], *columns: Any) -> None:
        try:
            add(*columns)
        except (ValueError, OverflowError) as error:
            raise DataError(f"pairs cannot be counted: {error}") from error


def encode_pairs(block: pa.RecordBatch) -> bytes:
    """A block of pairs as bytes: Arrow's IPC message without its schema."""
    return bytes(block.serialize())


def decode_pairs(data: bytes | pa.Buffer) -> pa.RecordBatch:
    """The block that `encode_pairs` wrote.

    Raises:
        DataError: The bytes are no such block.
    """
    try:
        block = pa.ipc.read_record_batch(pa.py_buffer(data), PAIR_SCHEMA)
        block.validate(full=True)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise DataError(f"a block of pair counts cannot be read: {error}") from error
    return block


def _pairs(columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(each) for each in columns], schema=PAIR_SCHEMA)


def _columns(block: pa.RecordBatch) -> list[NDArray[Any]]:
    """The columns of a block of pairs, checked."""
    if not block.schema.equals(PAIR_SCHEMA):
        raise DataError(
            f"a block of pair counts has {_described(block.schema)}, not {_described(PAIR_SCHEMA)}"
        )
    if nulls := sum(column.null_count for column in block.columns):
        raise DataError(f"a block of pair counts has {nulls} nulls")
    return [column.to_numpy() for column in block.columns]


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema) or "no columns"

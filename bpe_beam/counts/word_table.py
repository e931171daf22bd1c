"""A table of words and 64-bit counts: texts in, Arrow out.

The native table with Arrow on both sides. One table takes 24 bytes a slot, at most 5/8 full, and
the bytes of words over 15 bytes; with places 16 bytes a slot more. `memory_bytes` tells how much,
so that whoever fills a table can hand its words on before it grows too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.errors import DataError
from bpe_beam.limits import MAX_ELEMENT_BYTES

BLOCK_BYTES = MAX_ELEMENT_BYTES
"""A block of words is at most this large, unless it is a single longer word."""

PARTITIONS = 32
"""Partitions of a counts artifact: fixed, so that equal counts give equal files."""

WORD_SCHEMA = pa.schema([("word", pa.large_string()), ("count", pa.int64())])
PLACED_SCHEMA = pa.schema(
    [*WORD_SCHEMA, ("first_document", pa.uint64()), ("first_word", pa.uint64())]
)

Blocks = Iterator[tuple[int, pa.RecordBatch]]
"""Words by partition, sorted by their bytes within it."""

# What a row takes in a block beside its word: an offset and a count, and two places.
_ROW_BYTES = {False: 16, True: 32}
_BLOCK_OVERHEAD = 1024


def schema_of(with_places: bool, with_sources: bool = False) -> pa.Schema:
    """The columns of counted words; with places, also where each word occurred first; with
    sources, `source` before them."""
    schema = PLACED_SCHEMA if with_places else WORD_SCHEMA
    return pa.schema([("source", pa.large_string()), *schema]) if with_sources else schema


class WordTable:
    """Words and how often they occur.

    Not for several threads at once; they would wait for each other.

    Args:
        with_places: Whether to keep where each word occurs first.
    """

    def __init__(self, *, with_places: bool = False) -> None:
        self.with_places = with_places
        self._table = _native.WordTable(with_places)

    def __len__(self) -> int:
        """Unique words."""
        return len(self._table)

    @property
    def memory_bytes(self) -> int:
        """Bytes that the table holds."""
        return int(self._table.memory_bytes)

    def add_block(self, block: pa.RecordBatch) -> None:
        """Adds words that have been counted already (`schema_of`).

        Raises:
            DataError: A count below 1, an empty word, or a sum beyond 64 bits.
        """
        data, offsets = string_buffers(block.column("word"))
        places = [
            block.column(name).to_numpy() if self.with_places else None
            for name in ("first_document", "first_word")
        ]
        try:
            self._table.add_words(data, offsets, block.column("count").to_numpy(), *places)
        except (ValueError, OverflowError) as error:
            raise DataError(f"counted words cannot be added: {error}") from error

    def add(self, other: WordTable) -> None:
        """Adds another table's words."""
        self._table.add_table(other._table)

    def clear(self) -> None:
        """Forgets every word and gives the memory back."""
        self._table.clear()

    def blocks(self, partitions: int = PARTITIONS, max_bytes: int = BLOCK_BYTES) -> Blocks:
        """The words by partition, sorted by their bytes, in blocks of at most `max_bytes`.

        A partition without words gives no block. Equal tables give equal blocks, however they
        were filled. Takes about the table's memory again while it runs.
        """
        yield from self._blocks(self._table.split(partitions), max_bytes)

    def _blocks(self, parts: Iterable[Any], max_bytes: int) -> Blocks:
        """Blocks of what the native table gives for each partition."""
        schema = schema_of(self.with_places)
        for partition, (offsets, data, counts, *places) in enumerate(parts):
            if len(counts) == 0:
                continue
            words = pa.LargeStringArray.from_buffers(
                len(counts), pa.py_buffer(offsets), pa.py_buffer(data)
            )
            columns = [words, pa.array(counts)]
            if self.with_places:
                columns += [pa.array(place) for place in places]
            whole = pa.RecordBatch.from_arrays(columns, schema=schema)
            for start, end in block_bounds(offsets, max_bytes, _ROW_BYTES[self.with_places]):
                yield partition, whole.slice(start, end - start)


def block_bounds(offsets: np.ndarray, max_bytes: int, row_bytes: int) -> Iterator[tuple[int, int]]:
    """Rows [start, end) that fit into `max_bytes` together, at least one each."""
    ends = offsets[1:] + row_bytes * np.arange(1, len(offsets))
    start = 0
    begun = 0
    while start < len(ends):
        room = begun + max_bytes - _BLOCK_OVERHEAD
        end = max(start + 1, int(np.searchsorted(ends, room, side="right")))
        yield start, end
        begun = int(ends[end - 1])
        start = end


def string_buffers(texts: pa.Array) -> tuple[pa.Buffer, np.ndarray]:
    """The bytes of a string array, and int64 offsets into them: text i is data[o[i]:o[i + 1]].

    Raises:
        ValueError: A null among the texts, or an array that holds no strings.
    """
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise ValueError(f"texts must be an Arrow string array, not {texts.type}")
    if texts.null_count:
        raise ValueError(f"{texts.null_count} texts are null; leave them out before")
    if pa.types.is_string(texts.type):
        texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or data is None:
        return pa.py_buffer(b""), np.zeros(len(texts) + 1, np.int64)
    start = texts.offset
    return data, np.frombuffer(offsets, np.int64)[start : start + len(texts) + 1]


def encode_block(block: pa.RecordBatch) -> bytes:
    """A block as bytes: Arrow's IPC message without its schema."""
    return bytes(block.serialize())


def decode_block(data: bytes | pa.Buffer, with_places: bool) -> pa.RecordBatch:
    """The block that `encode_block` wrote.

    Raises:
        DataError: The bytes are no such block.
    """
    try:
        return pa.ipc.read_record_batch(pa.py_buffer(data), schema_of(with_places))
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"a block of word counts cannot be read: {error}") from error

"""Counted words, put together for a learner.

A learner holds every unique word: about `BYTES_PER_SYMBOL` bytes for each byte of them and
`BYTES_PER_WORD` for each word. Nothing else grows with the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bpe_beam.counts.word_counts import string_buffers
from bpe_beam.errors import UsageError

# Measured on the unique words of English, Chinese and 46 languages, 32,000 merges; see
# benchmarks/learner_memory.py.
BYTES_PER_SYMBOL = 80
BYTES_PER_WORD = 60


@dataclass(frozen=True)
class Words:
    """Unique words one after another: word i is data[offsets[i]:offsets[i + 1]].

    Attributes:
        data: uint8, the words' bytes.
        offsets: int64[words + 1].
        counts: int64[words].
    """

    data: np.ndarray
    offsets: np.ndarray
    counts: np.ndarray


def memory_needed(word_bytes: int, unique_words: int) -> int:
    """Bytes that learning takes, about, by the unique words' bytes and number."""
    return BYTES_PER_SYMBOL * word_bytes + BYTES_PER_WORD * unique_words


def gather_words(tables: Iterable[pa.Table | pa.RecordBatch], in_order_of_place: bool) -> Words:
    """Puts counted words together.

    Args:
        tables: Columns `word` and `count`, and places (see `schema_of`) when their order counts.
        in_order_of_place: Sort the words by their first occurrence in the corpus, as `first_seen`
            needs it; else they stay in the order given.

    Raises:
        UsageError: An order is asked for that the counts do not tell.
    """
    batches = [batch for table in tables for batch in _batches(table)]
    if in_order_of_place:
        batches = [_sorted_by_place(batches)]
    pieces, counts = [], []
    offsets = [np.zeros(1, np.int64)]
    end = 0
    for batch in batches:
        data, bounds = string_buffers(batch.column("word"))
        first, last = int(bounds[0]), int(bounds[-1])
        pieces.append(np.frombuffer(data, np.uint8)[first:last])
        offsets.append(bounds[1:] - first + end)
        counts.append(batch.column("count").to_numpy())
        end += last - first
    return Words(
        np.concatenate(pieces) if pieces else np.zeros(0, np.uint8),
        np.concatenate(offsets),
        np.concatenate(counts) if counts else np.zeros(0, np.int64),
    )


def _batches(table: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    return [table] if isinstance(table, pa.RecordBatch) else table.to_batches()


def _sorted_by_place(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if batches and "first_document" not in batches[0].schema.names:
        raise UsageError(
            "tie_break is 'first_seen', but these counts do not tell where words occurred first: "
            "train from the corpus itself, or count again with --tie-break first_seen"
        )
    table = pa.Table.from_batches(batches).combine_chunks()
    keys = [("first_document", "ascending"), ("first_word", "ascending")]
    return table.sort_by(keys).combine_chunks().to_batches()[0]

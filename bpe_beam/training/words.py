"""Counted words, put together for a learner.

A learner holds every unique word: see `memory_needed`. Nothing else grows with the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bpe_beam.counts.word_table import string_buffers
from bpe_beam.errors import UsageError

# What natural text and random bytes take at most, with vocabularies of 32,000 and 200,000: most of
# it is for pairs, and random bytes make nearly as many different pairs as they have symbols.
# benchmarks/memory.py measures it.
BYTES_PER_SYMBOL = 90
BYTES_PER_WORD = 60
BYTES_PER_ENTRY = 600

# The symbols of a merge round are tokens: fewer than the characters, and their pairs differ more.
BYTES_PER_TOKEN = 120


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

    @property
    def total_bytes(self) -> int:
        """Bytes of all words, each weighted by its count."""
        return weighted_total(np.diff(self.offsets), self.counts)


def weighted_total(sizes: np.ndarray, counts: np.ndarray) -> int:
    """The sum of sizes (int64[n]), each weighted by its count (int64[n]); of any size itself."""
    # In halves, whose sums stay within 64 bits.
    return (int(np.dot(sizes, counts >> 32)) << 32) + int(np.dot(sizes, counts & 0xFFFFFFFF))


def memory_needed(word_bytes: int, unique_words: int, vocab_size: int = 0) -> int:
    """Return an upper estimate of the bytes that learning from counted words takes.

    Args:
        word_bytes: The bytes of all unique words.
        unique_words: How many these are.
        vocab_size: The entries that are learned, of which there are no more than bytes of words; 0
            leaves the vocabulary out.

    Returns:
        Bytes, for this process beyond what it held before.
    """
    words = BYTES_PER_SYMBOL * word_bytes + BYTES_PER_WORD * unique_words
    return words + BYTES_PER_ENTRY * min(vocab_size, word_bytes)


def memory_of_tokens(tokens: int, words: int) -> int:
    """Return an upper estimate of the bytes that learning takes from words spelled in tokens.

    Args:
        tokens: The symbols of all words, or segments: characters, bytes or longer tokens.
        words: How many words or segments these are.

    Returns:
        Bytes; the vocabulary is not part of it.
    """
    return BYTES_PER_TOKEN * tokens + BYTES_PER_WORD * words


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

"""Counted words, gathered for a trainer.

A trainer keeps every unique word in memory: see `memory_needed`. Nothing else grows with the
corpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam.counts.word_table import string_buffers, weighted_total
from bpe_beam.errors import UsageError

# The most that natural text and random bytes take, with vocabularies of 32,000 to 1,000,000: most
# of it is for pairs. If merges go on until the best pair occurs once or twice, all pairs are
# listed, and random bytes make nearly as many different pairs as they have symbols. Natural text
# takes less than half. benchmarks/memory.py measures it.
BYTES_PER_SYMBOL = 60
BYTES_PER_WORD = 60
BYTES_PER_ENTRY = 750


@dataclass(frozen=True)
class Words:
    """Unique words one after another: word i is data[offsets[i]:offsets[i + 1]].

    Attributes:
        data: uint8, the words' bytes.
        offsets: int64[words + 1].
        counts: int64[words].
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def word(self, number: int) -> bytes:
        """Return a word."""
        return self.data[self.offsets[number] : self.offsets[number + 1]].tobytes()

    @property
    def total(self) -> int:
        """The number of words, each counted as often as it occurs."""
        return weighted_total(np.ones_like(self.counts), self.counts)

    @property
    def total_bytes(self) -> int:
        """Bytes of all words, each weighted by its count."""
        return weighted_total(np.diff(self.offsets), self.counts)


def memory_needed(word_bytes: int, unique_words: int, vocab_size: int = 0) -> int:
    """Return an upper estimate of the bytes that learning from counted words takes."""
    words = BYTES_PER_SYMBOL * word_bytes + BYTES_PER_WORD * unique_words
    return words + BYTES_PER_ENTRY * min(vocab_size, word_bytes)


def gather_words(tables: Iterable[pa.Table | pa.RecordBatch], in_order_of_place: bool) -> Words:
    """Return counted words as one sequence."""
    batches = [
        batch
        for table in tables
        for batch in ([table] if isinstance(table, pa.RecordBatch) else table.to_batches())
    ]
    if in_order_of_place:
        batches = [_sorted_by_position(batches)]
    data, offsets = [np.zeros(0, np.uint8)], [np.zeros(1, np.int64)]
    counts = [np.zeros(0, np.int64)]
    end = 0
    for batch in batches:
        buffer, bounds = string_buffers(batch.column("word"))
        first, last = int(bounds[0]), int(bounds[-1])
        data.append(np.frombuffer(buffer, np.uint8)[first:last])
        offsets.append(bounds[1:] - first + end)
        counts.append(batch.column("count").to_numpy())
        end += last - first
    return Words(np.concatenate(data), np.concatenate(offsets), np.concatenate(counts))


def first_word_with(words: Words, data: bytes) -> bytes | None:
    """Return the first word that contains some bytes; None if there is none."""
    pattern = re.compile(re.escape(data))
    start = 0
    while (match := pattern.search(words.data.data, start)) is not None:
        word = int(np.searchsorted(words.offsets, match.start(), side="right")) - 1
        if match.end() <= words.offsets[word + 1]:
            return words.word(word)
        start = match.start() + 1
    return None


def _sorted_by_position(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if batches and "first_document" not in batches[0].schema.names:
        raise UsageError(
            "cannot be first_seen: these counts do not have the position where each word occurred "
            "first",
            ("tie_break",),
            "train from the corpus itself, or count again with {tie_break} first_seen",
        )
    table = pa.Table.from_batches(batches).combine_chunks()
    keys = [("first_document", "ascending"), ("first_word", "ascending")]
    return table.sort_by(keys).combine_chunks().to_batches()[0]

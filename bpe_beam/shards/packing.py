"""Best-fit decreasing packing of documents into sequences, planned from their lengths alone.

Best-fit decreasing takes chunks of documents from the longest to the shortest, and puts each into
the sequence with the least room that holds it, or into a new one. It sees only lengths: so chunks
of one length, and sequences with equal room, are planned many at a time, and the plan has about 3
rows for each token of a sequence, whatever the number of documents. `docs/packing.md` proves that
the result equals that of the definition, chunk by chunk.

A chunk's length and its rank among the chunks of this length give its sequence and its position
there by arithmetic.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Placement(NamedTuple):
    """Where chunks go.

    Attributes:
        sequences: int64[n], the number of each chunk's sequence, from 0.
        offsets: int64[n], the position in the sequence of each chunk's first token.
    """

    sequences: NDArray[np.int64]
    offsets: NDArray[np.int64]


class PackingPlan:
    """A plan of sequences.

    Args:
        histogram: int64[N + 1]: the number of chunks of each length, 0 to N; at 0 there is none.
        rows: int64[rows, 6], in the order of lengths and ranks: length, rank of the first chunk,
            first sequence, number of sequences, chunks a sequence, position of the first chunk.
    """

    def __init__(
        self, histogram: NDArray[np.int64], rows: NDArray[np.int64], sequences: int
    ) -> None:
        self.histogram = histogram
        self.rows = rows
        self.sequences = sequences
        # Chunks have one number over all lengths: those of shorter lengths come first.
        self._before = np.cumsum(histogram) - histogram
        self._starts = self._before[rows[:, 0]] + rows[:, 1]

    @property
    def sequence_length(self) -> int:
        """The most tokens of a sequence."""
        return self.histogram.size - 1

    @property
    def tokens(self) -> int:
        """The number of tokens of all chunks."""
        return int(np.dot(self.histogram, np.arange(self.histogram.size, dtype=np.int64)))

    @property
    def padding(self) -> int:
        """The number of tokens that all sequences together have room for beyond those."""
        return self.sequences * self.sequence_length - self.tokens

    def place(self, lengths: NDArray[np.int64], ranks: NDArray[np.int64]) -> Placement:
        """Return the places of chunks.

        Args:
            lengths: int64[n], the lengths of the chunks, 1 to the length of a sequence.
            ranks: int64[n], the number of chunks of the same length before each, in any fixed order
                of all chunks.
        """
        numbers = self._before[lengths] + ranks
        row = self.rows[np.searchsorted(self._starts, numbers, side="right") - 1]
        sequence, in_sequence = np.divmod(ranks - row[:, 1], row[:, 4])
        offset = np.add(row[:, 5], in_sequence * lengths, dtype=np.int64)
        return Placement(row[:, 2] + sequence, offset)


class _Row(NamedTuple):
    """Sequences with equal room: the first one, their number, and the chunks that each has."""

    first: int
    sequences: int
    chunks: int


class _OpenRows:
    """The rows of sequences that have room, by room."""

    def __init__(self) -> None:
        self._rows: dict[int, deque[_Row]] = {}
        self._rooms: list[int] = []

    def take(self, size: int) -> tuple[int, _Row] | None:
        """Remove and return the room and the row with the least room that holds `size`."""
        index = bisect_left(self._rooms, size)
        if index == len(self._rooms):
            return None
        room = self._rooms[index]
        row = self._rows[room].popleft()
        if not self._rows[room]:
            del self._rows[room]
            del self._rooms[index]
        return room, row

    def add(self, room: int, row: _Row, *, first: bool = False) -> None:
        """Add a row behind, or before, the others with this room."""
        if room not in self._rows:
            self._rows[room] = deque()
            insort(self._rooms, room)
        rows = self._rows[room]
        rows.appendleft(row) if first else rows.append(row)


def plan_best_fit(histogram: NDArray[np.int64], max_chunks: int | None = None) -> PackingPlan:
    """Return the plan of best-fit decreasing.

    Among sequences with equal room, the one that has had this room for the longest time is taken.

    Args:
        histogram: int64[N + 1]: the number of chunks of each length, 0 to N; at 0 there is none.

    Cost: 0.05 s for N = 8,192, 0.7 s for N = 131,072, for any number of chunks.
    """
    length = histogram.size - 1
    limit = length if max_chunks is None else max_chunks
    open_rows = _OpenRows()
    placed: list[tuple[int, ...]] = []
    sequences = 0
    for size in range(length, 0, -1):
        left, rank = int(histogram[size]), 0
        while left:
            found = open_rows.take(size)
            if found is None:
                most = min(length // size, limit)
                found = length, _Row(sequences, -(-left // most), 0)
                sequences += found[1].sequences
            room, row = found
            most = min(room // size, limit - row.chunks)
            # A sequence takes chunks as long as they fit: none has less room and still enough.
            each, count = (most, min(row.sequences, left // most)) if left >= most else (left, 1)
            placed.append((size, rank, row.first, count, each, length - room))
            if room > each * size and row.chunks + each < limit:
                open_rows.add(room - each * size, _Row(row.first, count, row.chunks + each))
            if count < row.sequences:
                rest = _Row(row.first + count, row.sequences - count, row.chunks)
                open_rows.add(room, rest, first=True)
            rank += each * count
            left -= each * count
    rows = np.array(placed[::-1], np.int64).reshape(-1, 6)
    return PackingPlan(histogram, rows[np.lexsort((rows[:, 1], rows[:, 0]))], sequences)

"""The rows of shards, made of documents: documents in an order, or sequences of them.

A row is a document, or a sequence of at most N tokens. Each document is one slice of a row, or
several slices of several rows. The number of a row, and the position of a slice in it, follow from
the lengths of the documents before it alone, so the worker of any shard can compute them once it
knows the sums over the shards before.

Best-fit decreasing packing takes slices of documents from the longest to the shortest, and puts
each into the sequence with the least room that holds it, or into a new one. Only lengths matter, so
slices of one length, and sequences with equal room, are planned many at a time: the plan has about
3 rows for each token of a sequence, whatever the number of documents. The length of a slice and its
rank among the slices of this length give its sequence and its position there by arithmetic.
`docs/packing.md` proves that the result equals the result of the definition, slice by slice.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards.index_shuffle import index_shuffle

_Array = NDArray[np.int64]


class PackingPlan:
    """A plan of sequences.

    Args:
        histogram: int64[N + 1]: the number of slices of each length, 0 to N; at 0 there is none.
        rows: int64[rows, 6], in the order of lengths and ranks: length, rank of the first slice,
            first sequence, number of sequences, slices a sequence, position of the first slice.
    """

    def __init__(self, histogram: _Array, rows: _Array, sequences: int) -> None:
        self.histogram = histogram
        self.rows = rows
        self.sequences = sequences
        # Slices have one number over all lengths: shorter slices come first.
        self._before = np.cumsum(histogram) - histogram
        self._starts = self._before[rows[:, 0]] + rows[:, 1]

    @property
    def sequence_length(self) -> int:
        """The maximum tokens of a sequence."""
        return self.histogram.size - 1

    def place(self, lengths: _Array, ranks: _Array) -> tuple[_Array, _Array]:
        """Return the sequence of each slice, from 0, and the position of its first token there.

        `lengths` is int64[n]; `ranks` is int64[n], the number of slices of the same length before
        each, in any fixed order of all slices.
        """
        numbers = self._before[lengths] + ranks
        row = self.rows[np.searchsorted(self._starts, numbers, side="right") - 1]
        sequence, in_sequence = np.divmod(ranks - row[:, 1], row[:, 4])
        offset = np.add(row[:, 5], in_sequence * lengths, dtype=np.int64)
        return row[:, 2] + sequence, offset


class _Row(NamedTuple):
    """Sequences with equal room: the first one, their number, and the slices that each has."""

    first: int
    sequences: int
    slices: int


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
        """Add a row after, or before, the others with this room."""
        if room not in self._rows:
            self._rows[room] = deque()
            insort(self._rooms, room)
        rows = self._rows[room]
        rows.appendleft(row) if first else rows.append(row)


def plan_best_fit(histogram: _Array, max_slices: int | None = None) -> PackingPlan:
    """Return the plan of best-fit decreasing for int64[N + 1], the number of slices of each length.

    Among sequences with equal room, the one that has had this room for the longest time is taken.
    Cost: 0.05 s for N = 8,192, 0.7 s for N = 131,072, for any number of slices.
    """
    length = histogram.size - 1
    limit = length if max_slices is None else max_slices
    open_rows = _OpenRows()
    placed: list[tuple[int, ...]] = []
    sequences = 0
    for size in range(length, 0, -1):
        waiting, rank = int(histogram[size]), 0
        while waiting:
            fitting = open_rows.take(size)
            if fitting is None:
                fitting = length, _Row(sequences, -(-waiting // min(length // size, limit)), 0)
                sequences += fitting[1].sequences
            room, row = fitting
            full = min(room // size, limit - row.slices)
            # A sequence takes slices as long as they fit: none has less room and still enough.
            each, count = full, min(row.sequences, waiting // full)
            if waiting < full:
                each, count = waiting, 1
            placed.append((size, rank, row.first, count, each, length - room))
            if room > each * size and row.slices + each < limit:
                open_rows.add(room - each * size, _Row(row.first, count, row.slices + each))
            if count < row.sequences:
                rest = _Row(row.first + count, row.sequences - count, row.slices)
                open_rows.add(room, rest, first=True)
            rank += each * count
            waiting -= each * count
    rows = np.array(placed[::-1], np.int64).reshape(-1, 6)
    return PackingPlan(histogram, rows[np.lexsort((rows[:, 1], rows[:, 0]))], sequences)


class DocumentSlices(NamedTuple):
    """The slices of successive documents, in order; together they have all tokens."""

    rows: _Array  # int64[n], the number of the row that each slice is for
    offsets: _Array  # int64[n], the position of the slice's first token in the row
    # int64[n], the number of the slice's document among the documents of the call.
    documents: _Array
    lengths: _Array  # int64[n], the tokens of each slice


class WholeDocuments:
    """A `Layout` in which each document is a row."""

    def __init__(self, first: int) -> None:
        self._next = first

    def slices(self, lengths: _Array) -> DocumentSlices:
        documents = np.arange(lengths.size, dtype=np.int64)
        rows = documents + self._next
        self._next += lengths.size
        return DocumentSlices(rows, np.zeros_like(documents), documents, lengths)


class Concatenated:
    """A `Layout` that joins all documents; every N tokens are a sequence."""

    def __init__(self, sequence_length: int, first: int) -> None:
        self._length = sequence_length
        self._next = first

    def slices(self, lengths: _Array) -> DocumentSlices:
        documents = np.flatnonzero(lengths)
        ends = self._next + np.cumsum(lengths[documents])
        begins = ends - lengths[documents]
        stop = int(ends[-1]) if ends.size else self._next
        cuts = np.arange(-(-self._next // self._length) * self._length, stop, self._length)
        starts = np.union1d(begins, cuts)
        number = np.searchsorted(begins, starts, side="right") - 1
        rows, offsets = np.divmod(starts, self._length)
        self._next = stop
        return DocumentSlices(rows, offsets, documents[number], np.diff(starts, append=stop))


class BestFit:
    """A `Layout` that packs slices of documents by a plan.

    A document of more than N tokens becomes slices of N tokens and one with the remaining tokens.
    `ranks` is int64[N + 1], the number of earlier slices of each length.
    """

    def __init__(self, plan: PackingPlan, ranks: _Array) -> None:
        self._plan = plan
        self._ranks = ranks.copy()

    def slices(self, lengths: _Array) -> DocumentSlices:
        documents, slice_lengths = slices_of(lengths, self._plan.sequence_length)
        order = np.argsort(slice_lengths, kind="stable")
        counts = np.bincount(slice_lengths, minlength=self._ranks.size)
        starts = np.cumsum(counts) - counts
        ranks = np.empty_like(slice_lengths)
        ranks[order] = np.arange(slice_lengths.size) - starts[slice_lengths[order]]
        ranks += self._ranks[slice_lengths]
        self._ranks += counts
        rows, offsets = self._plan.place(slice_lengths, ranks)
        return DocumentSlices(rows, offsets, documents, slice_lengths)


Layout = WholeDocuments | Concatenated | BestFit
"""Divides documents into slices. Its `slices` takes int64[n], the tokens of the next documents in
the order of the corpus."""


def slices_of(lengths: _Array, sequence_length: int) -> tuple[_Array, _Array]:
    """Return the document and the length of each slice: N tokens, but for the last.

    `lengths` is int64[n], the tokens of each document; a document of 0 tokens has no slice.
    """
    rests = lengths % sequence_length
    counts = lengths // sequence_length + (rests > 0)
    documents = np.repeat(np.arange(lengths.size, dtype=np.int64), counts)
    slice_lengths = np.full(documents.size, sequence_length, np.int64)
    slice_lengths[np.cumsum(counts)[rests > 0] - 1] = rests[rests > 0]
    return documents, slice_lengths


def shuffled(rows: _Array, count: int, seed: int | None) -> _Array:
    """Return int64[n]: the positions of rows, int64[n], in the order of a seed."""
    if seed is None:
        return rows
    return index_shuffle(count, seed).position_of(rows.astype(np.uint64)).astype(np.int64)

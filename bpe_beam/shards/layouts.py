"""The rows of shards, made of documents: documents in an order, or sequences of them.

A row is a document, or a sequence of at most N tokens. Each document is one slice of a row, or
several slices of several rows. The number of a row, and the position of a slice in it, follow from
the lengths of the documents before it alone, so the worker of any shard can compute them once it
knows the sums over the shards before.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards.index_shuffle import index_shuffle
from bpe_beam.shards.packing import PackingPlan


class DocumentSlices(NamedTuple):
    """The slices of successive documents, in order; together they have all tokens.

    Attributes:
        rows: int64[n], the number of the row that each slice is for.
        offsets: int64[n], the position of the slice's first token in the row.
        documents: int64[n], the number of the slice's document among the documents of the call.
        lengths: int64[n], the tokens of each slice.
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int64]
    lengths: NDArray[np.int64]


class Layout(Protocol):
    """Divides documents into slices; documents come in the order of the corpus."""

    def slices(self, lengths: NDArray[np.int64]) -> DocumentSlices:
        """Return the slices of the next documents.

        Args:
            lengths: int64[n], the tokens of each document.
        """


class WholeDocuments:
    """A `Layout` in which each document is a row."""

    def __init__(self, first: int) -> None:
        self._next = first

    def slices(self, lengths: NDArray[np.int64]) -> DocumentSlices:
        """See `Layout.slices`."""
        documents = np.arange(lengths.size, dtype=np.int64)
        rows = documents + self._next
        self._next += lengths.size
        return DocumentSlices(rows, np.zeros_like(documents), documents, lengths)


class Concatenated:
    """A `Layout` that joins all documents; every N tokens are a sequence."""

    def __init__(self, sequence_length: int, first: int) -> None:
        self._length = sequence_length
        self._next = first

    def slices(self, lengths: NDArray[np.int64]) -> DocumentSlices:
        """See `Layout.slices`."""
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
    """A `Layout` that packs slices of documents by a plan; see `packing.py`.

    A document of more than N tokens becomes slices of N tokens and one with the remaining tokens.
    `ranks` is int64[N + 1], the number of earlier slices of each length.
    """

    def __init__(self, plan: PackingPlan, ranks: NDArray[np.int64]) -> None:
        self._plan = plan
        self._ranks = ranks.copy()

    def slices(self, lengths: NDArray[np.int64]) -> DocumentSlices:
        """See `Layout.slices`."""
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


def slices_of(
    lengths: NDArray[np.int64], sequence_length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the document and the length of each slice: N tokens, but for the last.

    `lengths` is int64[n], the tokens of each document; a document of 0 tokens has no slice.
    """
    rests = lengths % sequence_length
    counts = lengths // sequence_length + (rests > 0)
    documents = np.repeat(np.arange(lengths.size, dtype=np.int64), counts)
    slice_lengths = np.full(documents.size, sequence_length, np.int64)
    slice_lengths[np.cumsum(counts)[rests > 0] - 1] = rests[rests > 0]
    return documents, slice_lengths


def shuffled(rows: NDArray[np.int64], count: int, seed: int | None) -> NDArray[np.int64]:
    """Return int64[n]: the positions of rows, int64[n], in the order of a seed."""
    if seed is None:
        return rows
    return index_shuffle(count, seed).position_of(rows.astype(np.uint64)).astype(np.int64)

"""How documents become the units of shards: documents in an order, or sequences made of them.

A unit is a document, or a sequence of at most N tokens. Each document is one piece of a unit, or
several pieces of several units. The number of a unit, and a piece's position in it, follow from the
lengths of the documents before it alone, so the worker of any part of a corpus can compute them
once it knows the sums over the parts before.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards.index_shuffle import IndexShuffle
from bpe_beam.shards.packing import PackingPlan


class Pieces(NamedTuple):
    """The pieces of documents in a row, in order; together they are all tokens of the documents.

    Attributes:
        units: int64[n], the number of each piece's unit.
        offsets: int64[n], the position in the unit of each piece's first token.
        documents: int64[n], the number of each piece's document among those of the call.
        lengths: int64[n], the tokens of each piece.
    """

    units: NDArray[np.int64]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int64]
    lengths: NDArray[np.int64]


class Layout(Protocol):
    """Cuts documents into pieces; documents come in the order of the corpus."""

    def pieces(self, lengths: NDArray[np.int64]) -> Pieces:
        """Return the pieces of the next documents.

        Args:
            lengths: int64[n], the tokens of each document.
        """


class WholeDocuments:
    """A `Layout` in which each document is a unit."""

    def __init__(self, first: int) -> None:
        self._next = first

    def pieces(self, lengths: NDArray[np.int64]) -> Pieces:
        """See `Layout.pieces`."""
        documents = np.arange(lengths.size, dtype=np.int64)
        units = documents + self._next
        self._next += lengths.size
        return Pieces(units, np.zeros_like(documents), documents, lengths)


class Concatenated:
    """A `Layout` that joins all documents, and cuts a sequence after every N tokens."""

    def __init__(self, sequence_length: int, first: int) -> None:
        self._length = sequence_length
        self._next = first

    def pieces(self, lengths: NDArray[np.int64]) -> Pieces:
        """See `Layout.pieces`."""
        documents = np.flatnonzero(lengths)
        ends = self._next + np.cumsum(lengths[documents])
        begins = ends - lengths[documents]
        stop = int(ends[-1]) if ends.size else self._next
        cuts = np.arange(-(-self._next // self._length) * self._length, stop, self._length)
        starts = np.union1d(begins, cuts)
        number = np.searchsorted(begins, starts, side="right") - 1
        units, offsets = np.divmod(starts, self._length)
        self._next = stop
        return Pieces(units, offsets, documents[number], np.diff(starts, append=stop))


class BestFit:
    """A `Layout` that packs chunks of documents as a plan says; see `packing.py`.

    A document of more than N tokens becomes chunks of N tokens and one of the rest.

    Args:
        ranks: int64[N + 1], the number of chunks of each length before.
    """

    def __init__(self, plan: PackingPlan, ranks: NDArray[np.int64]) -> None:
        self._plan = plan
        self._ranks = ranks.copy()

    def pieces(self, lengths: NDArray[np.int64]) -> Pieces:
        """See `Layout.pieces`."""
        documents, chunks = chunks_of(lengths, self._plan.sequence_length)
        order = np.argsort(chunks, kind="stable")
        counts = np.bincount(chunks, minlength=self._ranks.size)
        starts = np.cumsum(counts) - counts
        ranks = np.empty_like(chunks)
        ranks[order] = np.arange(chunks.size) - starts[chunks[order]]
        ranks += self._ranks[chunks]
        self._ranks += counts
        units, offsets = self._plan.place(chunks, ranks)
        return Pieces(units, offsets, documents, chunks)


def chunks_of(
    lengths: NDArray[np.int64], sequence_length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the document and the length of each chunk: all of N tokens, but for the last.

    Args:
        lengths: int64[n], the tokens of each document; of 0 tokens there is no chunk.
    """
    rests = lengths % sequence_length
    counts = lengths // sequence_length + (rests > 0)
    documents = np.repeat(np.arange(lengths.size, dtype=np.int64), counts)
    chunks = np.full(documents.size, sequence_length, np.int64)
    chunks[np.cumsum(counts)[rests > 0] - 1] = rests[rests > 0]
    return documents, chunks


def shuffled(units: NDArray[np.int64], count: int, seed: int | None) -> NDArray[np.int64]:
    """Return int64[n]: the positions of units in the order of a seed.

    Args:
        units: int64[n], the numbers of units.
    """
    if seed is None:
        return units
    return _order(count, seed).position_of(units.astype(np.uint64)).astype(np.int64)


@functools.lru_cache(maxsize=4)
def _order(count: int, seed: int) -> IndexShuffle:
    return IndexShuffle(count, seed)

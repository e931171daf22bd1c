"""The training of pieces as passes over the segments of words, and the state between two passes.

A pass adds up an integer for each piece over all segments. No order and no division of the segments
changes the sums, so that they may be added up in this process or on workers. Between two passes a
training decides with them which pieces stay. docs/algorithm.md has the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.counts.round_files import from_stream, to_stream
from bpe_beam.training.merges.native_trainer import TrainingResult

Wide = npt.NDArray[np.uint64]
"""uint64[n, 2]: integers of 128 bits, the low half first."""

_STATE_SCHEMA = pa.schema(
    [("piece", pa.large_binary()), *((name, pa.uint64()) for name in ("low", "high", "score"))]
)
_SUM_SCHEMA = pa.schema([("piece", pa.uint32()), ("low", pa.uint64()), ("high", pa.uint64())])


class PieceState(NamedTuple):
    """The pieces of a training between two passes.

    Attributes:
        pieces: The pieces, in the order of their bytes.
        counts: How often each occurs, by the last pass; before the first pass its weight as a seed.
        scores: uint64[n], bits of doubles; of `unigram` after its first pass.
        sizes: The number of pieces before the first pass, and after each pass.
    """

    pieces: _native.Pieces
    counts: Wide
    scores: npt.NDArray[np.uint64]
    sizes: tuple[int, ...]

    @staticmethod
    def of_seeds(pieces: _native.Pieces, weights: Wide) -> PieceState:
        """Return the state before the first pass."""
        return PieceState(pieces, weights, np.zeros(len(pieces), np.uint64), (len(pieces),))

    @property
    def passes(self) -> int:
        """The number of passes so far."""
        return len(self.sizes) - 1

    @property
    def characters(self) -> str:
        """The pieces of one character, which no training drops, by code point."""
        texts = (text.decode() for text in self.pieces.texts() if len(text) <= 4)
        return "".join(sorted(text for text in texts if len(text) == 1))

    def after(
        self, pieces: _native.Pieces, counts: Wide, scores: npt.NDArray[np.uint64]
    ) -> PieceState:
        """Return the state after one more pass."""
        return PieceState(pieces, counts, scores, (*self.sizes, len(pieces)))

    def to_bytes(self) -> bytes:
        """Return the pieces as an Arrow stream, without `sizes`."""
        texts = pa.array(self.pieces.texts(), pa.large_binary())
        columns = [texts, *map(pa.array, (*self.counts.T, self.scores))]
        return to_stream(pa.RecordBatch.from_arrays(columns, schema=_STATE_SCHEMA))

    @staticmethod
    def from_bytes(data: bytes, sizes: tuple[int, ...], source: str) -> PieceState:
        """Return the state of a stream."""
        batch = from_stream(data, _STATE_SCHEMA, source)
        low, high, scores = (column.to_numpy() for column in batch.columns[1:])
        pieces = _native.Pieces(batch.column("piece").to_pylist())
        return PieceState(pieces, np.stack([low, high], 1), scores, sizes)


class PiecePass(NamedTuple):
    """A pass: expected counts by probabilities, bits of doubles; or counts in the best paths."""

    pieces: _native.Pieces
    probabilities: npt.NDArray[np.uint64] | None = None
    scores: npt.NDArray[np.int64] | None = None

    def sums(self, segments: _native.Segments, threads: int = 1) -> Wide:
        """Return the sum of each piece over segments."""
        if self.probabilities is not None:
            return self.pieces.expected_counts(segments, self.probabilities, threads)
        assert self.scores is not None
        return widened(self.pieces.path_counts(segments, self.scores, threads))


class PieceTraining(Protocol):
    """The decisions of a training between its passes."""

    def next_pass(self, state: PieceState) -> PiecePass | None:
        """Return the next pass; None if the training has ended."""

    def after(self, state: PieceState, sums: Wide) -> PieceState:
        """Return the state after a pass."""

    def result(self, state: PieceState) -> TrainingResult:
        """Return the vocabulary of the pieces."""


def train(
    training: PieceTraining,
    state: PieceState,
    segments: _native.Segments,
    threads: int,
    on_pass: Callable[[int], None] | None = None,
) -> TrainingResult:
    """Train in this process; `on_pass` is called after each pass."""
    while (one := training.next_pass(state)) is not None:
        state = training.after(state, one.sums(segments, threads))
        if on_pass:
            on_pass(1)
    return training.result(state)


def widened(counts: npt.NDArray[np.int64]) -> Wide:
    """Return counts in 128 bits."""
    return np.stack([counts.view(np.uint64), np.zeros(len(counts), np.uint64)], 1)


def narrowed(counts: Wide) -> npt.NDArray[np.int64]:
    """Return counts that fit 63 bits."""
    return np.ascontiguousarray(counts[:, 0]).view(np.int64)


def added(left: Wide, right: Wide) -> Wide:
    """Return the sums of two columns of integers."""
    low = left[:, 0] + right[:, 0]
    return np.stack([low, left[:, 1] + right[:, 1] + (low < left[:, 0])], 1)


def sums_to_bytes(sums: Wide) -> bytes:
    """Return the sums that are not 0 as an Arrow stream."""
    pieces = np.flatnonzero(sums.any(axis=1))
    columns = [pa.array(pieces.astype(np.uint32)), *map(pa.array, sums[pieces].T)]
    return to_stream(pa.RecordBatch.from_arrays(columns, schema=_SUM_SCHEMA))


def add_stored(sums: Wide, data: bytes, source: str) -> None:
    """Add the sums of a stream to others."""
    batch = from_stream(data, _SUM_SCHEMA, source)
    pieces, low, high = (column.to_numpy() for column in batch.columns)
    sums[pieces] = added(sums[pieces], np.stack([low, high], 1))

"""Documents in batches of bounded size, as readers give them and writers take them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.shards.formats.interface import LabelledReader, ShardReader

_DOCUMENTS = 1 << 16
_TOKENS = 1 << 20


class DocumentBatch(NamedTuple):
    """Documents in a row; see `ShardWriter.write_documents`."""

    ids: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    labels: pa.RecordBatch | None

    def filter(self, chosen: NDArray[np.bool_]) -> DocumentBatch:
        """Return the chosen documents; `chosen` is bool[documents]."""
        lengths = np.diff(self.offsets)
        return DocumentBatch(
            self.ids[np.repeat(chosen, lengths)],
            bounds_of(lengths[chosen]),
            None if self.labels is None else self.labels.filter(pa.array(chosen)),
        )


def document_batches(
    reader: ShardReader,
    start: int = 0,
    stop: int | None = None,
    *,
    labelled: bool = False,
) -> Iterator[DocumentBatch]:
    """Yield documents in order, by the positions of their first tokens.

    A document without tokens has the position of the token that would follow. `labelled`: with
    labels, of a format that has them.
    """
    labels_of = cast(LabelledReader, reader) if labelled else None
    token = 0
    for first in range(0, len(reader), _DOCUMENTS):
        lengths = reader.lengths(first, min(first + _DOCUMENTS, len(reader)))
        bounds = token + bounds_of(lengths)
        token = int(bounds[-1])
        row = int(np.searchsorted(bounds[:-1], start))
        end = lengths.size if stop is None else int(np.searchsorted(bounds[:-1], stop))
        bounds_read = bounds[row : end + 1]
        for begin, last in groups_of_documents(bounds_read, _TOKENS):
            number = first + row
            yield DocumentBatch(
                reader.tokens(int(bounds_read[begin]), int(bounds_read[last])),
                bounds_read[begin : last + 1] - bounds_read[begin],
                None if labels_of is None else labels_of.labels(number + begin, number + last),
            )
        if stop is not None and end < lengths.size:
            return


def groups_of_documents(bounds: NDArray[np.int64], limit: int) -> Iterator[tuple[int, int]]:
    """Yield the first document of each batch and the one after it, in order.

    `bounds` is int64[documents + 1]: where each document begins, and the end of the last.
    """
    start, documents = 0, bounds.size - 1
    while start < documents:
        stop = int(np.searchsorted(bounds, bounds[start] + limit, side="right")) - 1
        stop = min(max(stop, start + 1), start + limit)
        yield start, stop
        start = stop


def bounds_of(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return int64[n + 1]: where parts of some lengths begin, and the end of the last."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


def ranges_between(bounds: Sequence[int], start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Yield the parts that have something of a range, each with the bounds of it in the part.

    `bounds` has n + 1 positions: where each part begins, and the end of the last.
    """
    part = bisect_right(bounds, start) - 1
    while start < stop:
        first, end = bounds[part], min(stop, bounds[part + 1])
        if start < end:
            yield part, start - first, end - first
            start = end
        part += 1


def check_range(what: str, start: int, stop: int, count: int) -> None:
    """Refuse a range of documents or tokens that is not within a shard."""
    if not 0 <= start <= stop <= count:
        raise IndexError(f"{what} must be a range within 0 to {count}, got {start} to {stop}")

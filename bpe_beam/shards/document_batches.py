"""The documents of a shard in batches of bounded size, as writers take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.shards.formats.id_stream import groups_of_documents
from bpe_beam.shards.formats.interface import LabelledReader, ShardReader

_DOCUMENTS = 1 << 16
_TOKENS = 1 << 20


class DocumentBatch(NamedTuple):
    """Documents in a row; see `ShardWriter.write_documents`."""

    ids: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    labels: pa.RecordBatch | None


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
        bounds = token + np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
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

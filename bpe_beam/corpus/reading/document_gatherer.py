"""Documents that a reader yields one at a time, gathered into batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from bpe_beam.corpus.batches import BATCH_SCHEMA, PLACE_BITS
from bpe_beam.corpus.slices import SliceRequest


class Gatherer:
    """Keeps documents of a slice until there are enough for a batch."""

    def __init__(self, request: SliceRequest) -> None:
        self._request = request
        self._rows: list[tuple[str | None, str, int | None, bytes]] = []
        self._size = 0

    def add(
        self, name: str | None, source: str, offset: int | None, text: bytes
    ) -> Iterator[pa.RecordBatch]:
        """Add a document, and yield a batch if it is full."""
        request = self._request
        place = None if offset is None else request.number << PLACE_BITS | offset
        self._rows.append((name, source, place, text))
        self._size += len(text) + len(name or "") + len(source)
        if self._size >= request.batch_bytes or len(self._rows) >= request.max_rows:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield a batch of the remaining documents, if there are any."""
        if self._rows:
            names, sources, places, texts = zip(*self._rows, strict=True)
            self._rows, self._size = [], 0
            columns = [
                pa.array(names, pa.large_string()),
                pa.array(sources, pa.large_string()),
                pa.array(places, pa.uint64()),
                pa.array(texts, pa.large_binary()).view(pa.large_string()),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=BATCH_SCHEMA)
